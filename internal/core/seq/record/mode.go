package record

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Mode says when positions are written to ZooKeeper. Other code asks its methods where it can.
type Mode string

const (
	// Segment: a node takes blocks, and issues from memory.
	Segment Mode = ""
	// Strict: each request is answered after its positions were written. Requests that wait together share one write.
	Strict Mode = "strict"
	// Ordered: one node at a time, the owner, issues from memory. The others forward their requests to it.
	Ordered Mode = "ordered"
)

var allModes = []Mode{Segment, Strict, Ordered}

func (m Mode) String() string { return cmp.Or(string(m), "segment") }

// Holds reports whether nodes hold positions of a sequence in this mode before they are asked for, and so may issue
// them while they are cut off.
func (m Mode) Holds() bool { return m != Strict }

// Rises reports whether a later request gets a higher value over all nodes. So a life in this mode must not begin
// while nodes that are cut off may issue values of the last one (S19).
func (m Mode) Rises() bool { return m != Segment }

// Owned reports whether one node at a time, the owner, issues the values.
func (m Mode) Owned() bool { return m == Ordered }

// HasRequestKeys reports whether requests may have keys, which are remembered: see RequestKeys.
func (m Mode) HasRequestKeys() bool { return m == Strict }

// ParseMode returns the mode with this name. ok is false if there is none.
func ParseMode(name string) (m Mode, ok bool) {
	for _, m := range allModes {
		if m.String() == name {
			return m, true
		}
	}
	return "", false
}

// Check returns an error if this version does not know the mode.
func (m Mode) Check() error {
	if !slices.Contains(allModes, m) {
		return fmt.Errorf("%w %.40q. Upgrade it", ErrUnknownMode, string(m))
	}
	return nil
}

// ErrUnknownMode: a later version of flaked has written the record.
var ErrUnknownMode = errors.New("this version of flaked does not know the mode")
