package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/seqstore"
)

// maxSequences is the number of named sequences that have metrics of their own.
const maxSequences = 100

// sequenceMetrics are the families of metrics of named sequences.
type sequenceMetrics struct {
	known, age                      *metric
	values, blocks, waits, refusals *metric
	used, held, rate, unanswered    *metric
}

func newSequenceMetrics(add func(kind prometheus.ValueType, name, help string, labels ...string) *metric) (m sequenceMetrics) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	m.known = add(gauge, "named_sequences", "Named sequences that the node knows, by state.", "state")
	m.age = add(gauge, "named_sequences_read_age_seconds", "Time since the node last knew all changes of operators to named sequences.")
	m.values = add(counter, "named_sequence_values_total", "Values of named sequences that the node has issued.")
	m.blocks = add(counter, "named_sequence_blocks_total", "Blocks of values that the node has taken from ZooKeeper.")
	m.waits = add(counter, "named_sequence_waits_total", "Requests for values that waited for ZooKeeper.")
	m.refusals = add(counter, "named_sequence_refusals_total", "Requests for values that were refused, by reason.", "reason")
	m.used = add(gauge, "named_sequence_used_ratio", "Part of the values that nodes have taken, 0 to 1. Only for 100 sequences: those with problems, then the most used ones.", "sequence")
	m.held = add(gauge, "named_sequence_held_values", "Values that this node has taken and not issued. For the same 100 sequences.", "sequence")
	m.rate = add(gauge, "named_sequence_values_per_second", "Values that this node issues in a second. For the same 100 sequences.", "sequence")
	m.unanswered = add(gauge, "named_sequence_unanswered_values", "Values of a strict sequence that this node has taken, or perhaps taken, and not answered: nobody gets them, but for those that are being answered. For the same 100 sequences.", "sequence")
	return m
}

func (m sequenceMetrics) collect(s *Server, send sender) {
	r := s.cfg.Sequences()
	views := seqViews(r)
	states := map[string]int{clusterview.SeqInUse: 0, clusterview.SeqAfterLoss: 0, clusterview.SeqFrozen: r.FrozenTemplates, clusterview.SeqExhausted: 0}
	for _, v := range views {
		states[v.State]++
	}
	for state, n := range states {
		send(m.known, float64(n), state)
	}
	if r.ReadAgo >= 0 {
		send(m.age, r.ReadAgo.Seconds())
	}
	send(m.values, float64(r.Issued))
	send(m.blocks, float64(r.Blocks))
	send(m.waits, float64(r.Waits))
	for reason, n := range r.Refused {
		send(m.refusals, float64(n), string(reason))
	}
	first, _ := firstSequences(views, maxSequences)
	for _, v := range first {
		send(m.used, clusterview.Part(clusterview.Taken(v.Record)), v.Name)
		send(m.held, float64(v.Held), v.Name)
		send(m.rate, v.PerSecond, v.Name)
		if v.Record.Mode == seqstore.Strict {
			send(m.unanswered, float64(v.Unanswered), v.Name)
		}
	}
}
