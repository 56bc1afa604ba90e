package losses

import (
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/timeguard"
)

// Memory has the part of a State that a process saves for the next one.
type Memory struct {
	// Incarnation is that of /cluster when all of this was compared with ZooKeeper. Entered is the time at which the
	// node entered it, nil for the first one.
	Incarnation int64             `json:"incarnation"`
	Entered     *timeguard.Moment `json:"entered,omitempty"`
	State       record.State      `json:"state"`
	// Trusted is the last read that was sent while the node might take positions, and Last the last one.
	Trusted Reading `json:"sure"`
	Last    Reading `json:"last"`
}

// Memory returns what the next process needs. ok is false if the node has not settled since ZooKeeper lost data (S36).
func (k State) Memory() (m Memory, ok bool) {
	//mutant:s36-remembers-before by internal/core/seq:TestFollowedCountsForOneSession -> if k.seq() == nil {
	if !k.HasSettled() {
		return Memory{}, false
	}
	known := k.seq()
	m = Memory{Incarnation: known.state.Incarnation, State: known.state, Trusted: known.trusted, Last: known.last}
	if k.entered != longAgo {
		m.Entered = &k.entered
	}
	return m, true
}

// Recall returns what an earlier process of this node had known. It had settled, or it would have saved nothing. The
// moments in m are as this process measures time, and atLeast is the present time of AtLeast.
func Recall(m Memory, atLeast int64) State {
	k := New()
	m.State.Incarnation = m.Incarnation
	k.incarnation, k.phase = m.Incarnation, settled{&seqRead{m.State, atLeast, m.Trusted, m.Last}}
	if m.Entered != nil {
		k.entered = *m.Entered
	}
	return k
}
