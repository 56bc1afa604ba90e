package coordinator

import (
	"encoding/json"
	"fmt"
	"slices"
)

// maxHistory is how many former holders a slot remembers: each heartbeat
// writes them again.
const maxHistory = 4

// maxHistoryText bounds what a name may take there, in bytes.
const maxHistoryText = 64

// Former is a holder that a slot had before the present one. It is for people:
// nothing is decided by it.
type Former struct {
	Node string `json:"node"`
	Name string `json:"name,omitempty"`
	Host string `json:"host,omitempty"` // where it is not the name
	// Term is the first one it held the slot by; Granted when, by its own
	// clock, 0 where that is not known. Unix milliseconds.
	Term    int64 `json:"term,omitempty"`
	Granted int64 `json:"granted,omitempty"`
	// Ended is one of EndedReleased and the like; By who did it by hand.
	Ended string `json:"ended"`
	By    string `json:"by,omitempty"`
}

// How a holder came to be a former one.
const (
	EndedReleased = "released" // it gave the slot back
	EndedByHand   = "by hand"  // an operator took the slot from it
	EndedStopped  = "stopped"  // it stopped cleanly, and did not come back while its lease ran
	EndedVanished = "vanished" // it was not heard of any more until its lease had ended
	EndedGaveWay  = "gave way" // an owner that ZooKeeper had forgotten came back
)

// History is the former holders of a slot, the oldest first; what is left over
// is zero. (An array, so that records can be compared.)
type History [maxHistory]Former

// List is the holders there are.
func (h History) List() []Former {
	n := slices.Index(h[:], Former{})
	if n < 0 {
		n = len(h)
	}
	return h[:n:n]
}

func (h History) String() string { return fmt.Sprintf("%+v", h.List()) }

// MarshalJSON writes those there are.
func (h History) MarshalJSON() ([]byte, error) { return json.Marshal(h.List()) }

// UnmarshalJSON takes what cannot be read for no history: a record is not to
// be lost for it.
func (h *History) UnmarshalJSON(b []byte) error {
	*h = History{}
	var list []Former
	if json.Unmarshal(b, &list) == nil {
		for _, f := range list {
			if f != (Former{}) {
				*h = h.with(f)
			}
		}
	}
	return nil
}

// with is the history with one more, the oldest left out where there is no room.
func (h History) with(f Former) History {
	list := h.List()
	if len(list) == len(h) {
		list = list[1:]
	}
	var out History
	copy(out[:], list)
	out[len(list)] = f
	return out
}

// inherit carries a slot's history over from the record that this one, of a
// moment by its holder's clock, takes the place of.
func (s *Slot) inherit(old Slot, now int64) {
	if old.Node == s.Node && !old.Released {
		s.FromTerm, s.Granted, s.History = old.FromTerm, old.Granted, old.History
		return
	}
	s.FromTerm, s.Granted, s.History = s.Term, now, old.History
	if old.H == 0 && !old.Released {
		s.Granted = 0 // its own record, put back: nobody has written down since when
	}
	if old.Term > 0 {
		s.History = old.History.with(old.former(now))
	}
}

// former is what a slot remembers of its holder when it has another, at a
// moment by that one's clock.
func (s Slot) former(now int64) Former {
	f := Former{Node: s.Node, Name: clip(s.Name), Host: clip(s.Host), Term: s.FromTerm, Granted: s.Granted, Ended: s.ended(now), By: clip(s.ReleasedBy)}
	if f.Host == f.Name {
		f.Host = ""
	}
	return f
}

func (s Slot) ended(now int64) string {
	switch {
	case s.ReleasedBy != "":
		return EndedByHand
	case s.Released:
		return EndedReleased
	case s.H > now:
		return EndedGaveWay // nobody else may write over a lease that runs
	case s.Stopped:
		return EndedStopped
	}
	return EndedVanished
}

// clip cuts a text between letters.
func clip(s string) string {
	if len(s) <= maxHistoryText {
		return s
	}
	end := maxHistoryText
	for end > 0 && s[end]&0xC0 == 0x80 { // within a letter of several bytes
		end--
	}
	return s[:end]
}
