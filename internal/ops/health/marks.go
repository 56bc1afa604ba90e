package health

import (
	"cmp"

	"github.com/flaked/flaked/internal/core/seq/record"
)

// Marks says what the page marks in the row of a worker.
type Marks struct {
	Away     bool // no node is connected, or the record is missing
	Off      bool // the clock is too far off
	Late     bool // the node has missed a heartbeat. The problem heartbeats-missed needs three
	Refusing bool // the node is connected, and refuses
}

// Trouble reports whether an operator should look at the worker.
func (m Marks) Trouble() bool { return m.Away || m.Off || m.Late || m.Refusing }

// Marks returns the marks of a worker by its record. own is the worker if this process has it, else nil: the process
// knows its own state before ZooKeeper does. stale means that the record should have been read again since.
func (w WorkerReport) Marks(own *OwnWorker, stale bool) Marks {
	m := Marks{Away: w.State == Disconnected || w.State == RecordMissing, Off: w.ClockOff()}
	if w.State != Live {
		return m
	}
	if m.Refusing = w.Refuses(); own != nil {
		m.Refusing, m.Off = !own.Ready, m.Off || own.ClockOff()
	}
	m.Late = !stale && w.ReportAgeMs != nil && HeartbeatOverdue(*w.ReportAgeMs, w.HeartbeatMs)
	return m
}

// Stopped reports whether nodes get no values of the sequence until an operator acts.
func (r *SequenceReport) Stopped() bool {
	return r.State == SeqDamaged || r.State == SeqFrozen || r.State == SeqExhausted
}

// Waits returns why the node gets no values at present although the state allows that, "" if it gets some.
func (r *SequenceReport) Waits() string {
	switch refusal := r.atNode().Refusal; refusal {
	case record.Frozen, record.Exhausted: // which is the state, too
		return ""
	default:
		return string(refusal)
	}
}

// CompareUrgency is below 0 if sequence a of a node should be shown before b: the stopped ones come first, then those
// that wait, then the most used ones.
func CompareUrgency(a, b *SequenceReport) int {
	return cmp.Or(cmp.Compare(a.urgency(), b.urgency()), cmp.Compare(b.Used(), a.Used()), cmp.Compare(a.Name, b.Name))
}

// urgency returns a number that is lower for a more urgent sequence. Stopped ones have the places of their problems.
func (r *SequenceReport) urgency() int {
	switch {
	case r.Stopped():
		p, _ := r.problem()
		return place(p.cause)
	case r.Waits() != "":
		return len(table)
	}
	return len(table) + 1
}
