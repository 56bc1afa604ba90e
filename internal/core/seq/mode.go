package seq

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/worker"
)

// Mode says when positions are written to ZooKeeper. Other code asks the methods in this file where it can. A few
// places need the mode itself: those that call stocked or owned, renew.go and placement.go (*ordered), and trace.go and
// standing.go (Strict).
type Mode string

const (
	// Segment: a node takes blocks, and issues from memory.
	Segment Mode = ""
	// Strict: each request is answered after its positions were written. Requests that wait together share one write.
	Strict Mode = "strict"
	// Ordered: one node at a time, the owner, issues from memory. The others pass their requests on to it.
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

// hasKeys reports whether requests may have keys, which are in a znode beside the record.
func (m Mode) hasKeys() bool { return m == Strict }

// start returns the mode of a series whose record the node has met just now.
func (s *series) start(m Mode) mode {
	switch m {
	case Strict:
		return &strict{series: s}
	case Ordered:
		return newOrdered(s)
	}
	return newSegment(s)
}

// ParseMode returns the mode with this name. ok is false if there is none.
func ParseMode(name string) (m Mode, ok bool) {
	for _, m := range allModes {
		if m.String() == name {
			return m, true
		}
	}
	return "", false
}

// check returns an error if this version does not know the mode.
func (m Mode) check() error {
	if !slices.Contains(allModes, m) {
		return fmt.Errorf("%w %.40q. Upgrade it", ErrUnknownMode, string(m))
	}
	return nil
}

// ErrUnknownMode: a later version of flaked has written the record.
var ErrUnknownMode = errors.New("this version of flaked does not know the mode")

// mode is how a node issues a sequence, and what the node keeps for that: *segment, *strict and *ordered. A new life of
// a name has a new one. series.mu is held when a method is called.
type mode interface {
	// serve issues the values of a request, refuses it, or makes it wait. low means that Round should be called soon.
	// readAt is when the node last knew that nothing had changed.
	serve(r request, now, readAt int64, to []worker.Run) (_ []worker.Run, low bool, _ error)
	// tooMany returns the refusal of a request for n values if no request ever gets so many, else nil.
	tooMany(n int64) *Refusal
	// lacks reports whether requests wait that the node cannot answer without a write.
	lacks() bool
	// used reports whether the node takes blocks of the sequence also when nobody waits.
	used() bool
	// urgency returns how soon a round must work on a sequence for which nobody waits.
	urgency(e situation) urgency
	// saw takes over what was read, after the series has taken over the record. before is what it knew until then.
	saw(v view, before *Record, e situation)
	// nextWrite returns the write that is due, or nil. It takes the requests of the write out of those that wait.
	nextWrite(v view, e situation) *blockWrite
	// wrote ends a write that was sent at this time with the error err: see notMade. It returns the requests that must
	// look again, and the longest time for which rounds must leave the sequence to other nodes.
	wrote(t blockWrite, v view, sent, now int64, err error) (woken []request, pause time.Duration)
	// pause returns the longest pause after tries in which other nodes were faster.
	pause(now int64) time.Duration
	// drop drops what the node holds.
	drop()
	// report notes what the node holds in u, and returns it for the line of SEQ.
	report(u *Use) string
}

// blockWrite is the write of a mode, with what the node knows of it.
type blockWrite struct {
	write
	requests []request // that it answers
	keys     *keyring  // as the write leaves them, nil if it does not write them
	// renews: the owner of an ordered sequence makes the write, in this session. It may before the node may take
	// positions.
	renews  bool
	session int64
}

// stocked returns the mode if it holds positions in memory, which the journal keeps. nil: it has another one.
func (s *series) stocked() *segment {
	m, _ := s.mode.(*segment)
	return m
}

// owned returns the mode if this node is the owner of the sequence, else nil.
func (s *series) owned() *ordered {
	if m, ok := s.mode.(*ordered); ok && m.leased() {
		return m
	}
	return nil
}
