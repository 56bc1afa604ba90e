package lineproto

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/sequence"
)

// An address is not an identity: another node may listen there than the client thinks. So clients say which cluster
// they want, and nodes which owner.

var errCluster = replies.New(ids.ERR, "a cluster is a name or a UUID: letters, digits and . _ -, at most 64")

// inCluster returns nil if this node belongs to the cluster with this name or UUID, else the refusal.
func (s *session) inCluster(wanted []byte) *ids.ReplyError {
	if s.uuid != "" && string(wanted) == s.uuid {
		return nil
	}
	if !isCluster(string(wanted)) {
		return errCluster
	}
	var name string
	switch name, s.uuid = s.srv.cfg.Backend.Cluster(); {
	case s.uuid == "":
		return replies.ErrNoCluster
	case string(wanted) != name && string(wanted) != s.uuid:
		return replies.NotInCluster(name, s.uuid, string(wanted))
	}
	return nil
}

// isCluster reports whether a word may be the name or the UUID of a cluster.
func isCluster(word string) bool {
	return len(word) <= 64 && !strings.ContainsFunc(word, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("._-", r)
	})
}

// workerLine returns the line of WORKER.
func (s *session) workerLine() string {
	name, uuid := s.srv.cfg.Backend.Cluster()
	return fmt.Sprintf("%s cluster=%s cluster_uuid=%s", s.srv.cfg.Backend.Worker(), name, cmp.Or(uuid, "none"))
}

// passWords is the number of words behind PASS: name n cluster id term owner. noOwner is the last one if the sequence
// had no owner.
const (
	passWords = 6
	noOwner   = "-"
)

var errTerm = replies.New(ids.ERR, "a term must be a number, digits only")

// passed returns how many values a PASS asks for, and whose. A node of another cluster refuses.
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
