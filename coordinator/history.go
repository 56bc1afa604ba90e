package coordinator

import (
	"encoding/json"
	"slices"
)

// PastHolder is an earlier holder of a slot. Only Claim.wasLost decides by it.
type PastHolder struct {
	Node string `json:"node"`
	// Term is the first term of this holder. Granted is the time at which it began, by its own clock, Unix
	// milliseconds; 0: not known.
	Term    int64 `json:"term,omitempty"`
	Granted int64 `json:"granted,omitempty"`
	// Ended is one of the Ended constants.
	Ended string `json:"ended"`
}

// How the tenure of a former holder ended.
const (
	EndedReleased = "released" // it gave the slot back
	EndedTaken    = "taken"    // an operator took the slot from it
	EndedStopped  = "stopped"  // it stopped cleanly, and did not come back before its lease ended
	EndedVanished = "vanished" // it sent no heartbeat until its lease had ended
	EndedGaveWay  = "gave way" // a holder that ZooKeeper had lost came back
)

// maxHistory is the number of former holders in a slot's record. It is small, because each heartbeat writes them again.
const maxHistory = 4

// History has the former holders of a slot, the oldest first.
type History []PastHolder

// UnmarshalJSON reads the former holders. It takes a list that it cannot read for an empty one, so that the record
// itself stays readable.
func (h *History) UnmarshalJSON(b []byte) error {
	var list []PastHolder
	if json.Unmarshal(b, &list) == nil {
		*h = list[max(0, len(list)-maxHistory):]
	}
	return nil
}

// with returns the history with one more entry. If there is no room it drops the oldest.
func (h History) with(f PastHolder) History {
	return append(slices.Clone(h[max(0, len(h)-maxHistory+1):]), f)
}

// inherit copies the history of old, the record that s replaces, into s. now is the clock of the holder of s, Unix ms.
func (s *Slot) inherit(old Slot, now int64) {
	if old.Node == s.Node && !old.Released {
		s.FromTerm, s.Granted, s.History = old.FromTerm, old.Granted, old.History
		return
	}
	// Claim.wasLost relies on this: no holder begins before the bound of the one before.
	s.FromTerm, s.Granted, s.History = s.Term, max(now, old.LeaseUntil), old.History
	if old.LeaseUntil == 0 && !old.Released {
		s.Granted = 0 // our record, restored: its begin is not known
	}
	// A holder that gave the slot back before it confirmed has issued nothing. Entries of such holders would push
	// others out.
	untouched := old.Released && !old.Confirmed && old.Term == old.FromTerm
	if old.Term > 0 && !untouched {
		s.History = old.History.with(old.pastHolder(now))
	}
}

// pastHolder returns the holder of s as an entry of the history. now is the clock of the next holder, Unix ms.
func (s Slot) pastHolder(now int64) PastHolder {
	return PastHolder{Node: s.Node, Term: s.FromTerm, Granted: s.Granted, Ended: s.howEnded(now)}
}

func (s Slot) howEnded(now int64) string {
	switch {
	case s.ReleasedBy != "":
		return EndedTaken
	case s.Released:
		return EndedReleased
	case s.LeaseUntil > now:
		return EndedGaveWay // only a returning holder may write over a lease that runs
	case s.Stopped:
		return EndedStopped
	}
	return EndedVanished
}
