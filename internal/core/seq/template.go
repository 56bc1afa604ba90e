package seq

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/sequence"
)

// A template is a record whose name ends with *, such as order:*. It issues no values itself. If a node is
// asked for an unknown name that a template matches, it creates the sequence with the template's values and
// settings (S22). Among several templates that match, the one with the longest name counts.

// newRecord returns the record of a sequence that did not exist.
func newRecord(m sequence.Map, s Settings, st State) Record {
	return Record{
		ID: nonce(), Map: m, Settings: s, Above: -1,
		Credit: s.ceiling().Burst(), At: st.Time, Gen: st.Purged, Incarnation: st.Incarnation,
	}
}

// withPeak returns a new record with its peak: nothing above the burst can have been issued.
func (r Record) withPeak() Record {
	r.PeakFrom, r.PeakAt = r.Next+positions.Ceiling(r.HardCeiling).Burst(), r.At
	return r
}

// create returns the template after it has created a sequence, and the sequence. name is the template's.
func (r Record) create(name string, st State) (template, created Record, refusal *Refusal) {
	switch {
	//mutant:s15-template by seqsim -> case false:
	case r.Incarnation != st.Incarnation: // a sequence of this name may be lost, and would begin again (S15)
		if r.Scatter > 0 {
			return Record{}, Record{}, frozenScattered(name, r.Highest(0))
		}
		return Record{}, Record{}, frozenTemplate(name)
	//mutant:s22-max-names by TestTemplateCreatesNoMoreThanItMay -> case false:
	case r.Names >= r.MaxNames:
		return Record{}, Record{}, allCreated(name, r.Names)
	}
	created = newRecord(r.Map, r.Settings, st)
	created.Mode, created.Next, created.Above = r.Mode, r.Next, r.Above
	r.Names++
	return r, created.withPeak(), nil
}

// template is a template as it was read.
type template struct {
	series  *series
	record  Record
	version int32
	before  *Record // what the node knew of it when the read was sent
}

// create returns the step that creates the sequence name, or the refusal if the template must not.
func (t *template) create(name string, v view, e situation) (step, *Refusal, error) {
	t.series.mu.Lock()
	older := judge(&t.record, t.series.known, v.state.Purged) == foundLost
	lost := v.incarnation() > t.series.incarnation // the node is about to put its own template back
	t.series.mu.Unlock()
	switch {
	case older && !lost && judge(&t.record, t.before, v.state.Purged) != foundLost: // written since, in this round
		return step{}, nil, errReadBefore
	case older && !lost:
		return step{}, nil, &lostError{reason: "the record of template " + t.series.name + " is older than before"}
	case older, e.unconfirmed > 0: // a sequence of this name that is lost may be put back until then
		return step{}, confirming(max(e.unconfirmed, time.Second)), nil
	}
	after, created, refusal := t.record.create(t.series.name, *v.state)
	if refusal != nil {
		return step{}, refusal, nil
	}
	after = after.written(e.nonce, e.by)
	created, ops := created.written(e.nonce, e.by).withSecret()
	ops = append(ops, createRecord(name, created))
	ops = append(ops, setRecord(t.series.name, after, t.version)...)
	return step{kind: createStep, dirs: created.dirs(name), ops: ops, done: func(log hclog.Logger) {
		t.series.change(func() {
			t.series.know(after)
			t.series.incarnation = v.incarnation()
		})
		log.Info("a template has created a sequence", "sequence", name, "template", t.series.name,
			"created", after.Names, "max_names", after.MaxNames)
	}}, nil, nil
}
