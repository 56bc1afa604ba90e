package lineproto

import (
	"strconv"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/sequence"
)

// passWords is the number of words behind PASS: name n cluster id term owner. noOwner is the last one if the sequence
// had no owner.
const (
	passWords = 6
	noOwner   = "-"
)

var errTerm = replies.New(ids.ERR, "a term must be a number, digits only")

// passed returns how many values a PASS asks for, and of which ownership: it is a RANGE that another node has passed
// on. A node of another cluster refuses.
func (s *session) passed(args [][]byte) (n int64, of *sequence.Ownership, e *ids.ReplyError) {
	n, ok := number(args[1])
	term, err := strconv.ParseInt(string(args[4]), 10, 64)
	switch {
	case !ok || n > maxRange:
		return 0, nil, errRange
	case err != nil || term < 0:
		return 0, nil, errTerm
	}
	//mutant:o10-any-cluster by TestTranscripts -> if false {
	if e = s.inCluster(args[2]); e != nil {
		return 0, nil, e
	}
	return n, s.ownership(args[3], args[5], term), nil
}

// ownership returns the ownership that these words name. Most requests of a connection name the same one.
func (s *session) ownership(id, owner []byte, term int64) *sequence.Ownership {
	if string(owner) == noOwner {
		owner = nil
	}
	if o := s.owner; o == nil || o.Term != term || o.ID != string(id) || o.Owner != string(owner) {
		s.owner = &sequence.Ownership{ID: string(id), Owner: string(owner), Term: term}
	}
	return s.owner
}
