package lineproto

import (
	"bytes"
	"context"
	"slices"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// A request that waits must not keep those behind it from being worked on, which may be about other sequences: a
// pipeline for a hundred names would wait a hundred times, and another node sends PASS for all its clients on one
// connection. So while a request waits, the session looks at the input behind it, and makes these requests before their
// turn. They are answered in order all the same.

const (
	// maxPassAhead and maxNextAhead are how many requests are made before their turn.
	maxPassAhead, maxNextAhead = 1024, 128
	// aheadSize is about how many bytes such a request takes. All of them, with all that sessions gather, take at most
	// half of maxGathered.
	aheadSize = 512
)

// early is what a request got before its turn.
type early struct {
	runs []worker.Run
	err  error
}

// pass executes PASS, a RANGE that another node has passed on.
func (s *session) pass(_ context.Context, args [][]byte) *ids.ReplyError {
	if n, ok := number(args[1]); ok && s.takeAhead(seqPass, args[0], n) {
		return nil
	}
	return s.askWhole(seqPass, args)
}

// takeAhead makes the request that was made before its turn the session's task, and returns false if there is none.
func (s *session) takeAhead(kind seqKind, name []byte, n int64) bool {
	if len(s.ahead) == 0 {
		return false
	}
	q := s.ahead[0]
	s.ahead = s.ahead[1:]
	s.looked -= q.size
	if q.kind != kind || int64(q.n) != n || !bytes.Equal(q.name, name) {
		s.ahead, s.looked = nil, 0 // not the lines that were looked at
		return false
	}
	q.stopped = s.seq.stopped
	s.seq, s.task = q, taskSequence
	return true
}

// lookAhead makes the requests at the beginning of in, which follows the request that waits. It stops at a line that is
// not PASS or NEXT for one value.
func (s *session) lookAhead(in []byte) {
	if s.inRESP() || s.seq.kind != seqPass && s.seq.kind != seqNext {
		return
	}
	for s.srv.gathered.Load() < maxGathered/2 {
		end := bytes.IndexByte(in[s.looked:], '\n')
		if end < 0 || end > MaxLine {
			break
		}
		line, _ := cutCR(in[s.looked : s.looked+end])
		q := s.aheadOf(line)
		if q == nil {
			break
		}
		q.size = end + 1
		s.looked += q.size
		s.ahead = append(s.ahead, q)
		runs, err := s.srv.cfg.Sequences.Take(&q.wait, q.name, q.n, q.kind == seqPass, q.wake, nil)
		if q.pending = isPending(err); !q.pending {
			q.early = &early{runs, err}
		}
	}
	s.gather()
}

// aheadOf returns the request in a line, nil if it must wait for its turn.
func (s *session) aheadOf(line []byte) *seqRequest {
	verb, rest := cutWord(line)
	name, rest := cutWord(rest)
	//mutant:w-rights-ahead by TestRequestsMadeBeforeTheirTurnObeyRights -> if sequence.CheckName(name) != nil {
	if sequence.CheckName(name) != nil || !s.rights.MayUse(name) {
		return nil
	}
	q := newSeqRequest(s.seq.tell)
	q.name, q.times = append(q.name, name...), 1
	switch count, more := cutWord(rest); {
	case equalFold(verb, "PASS") && len(more) == 0 && len(s.ahead) < maxPassAhead:
		n, ok := number(count)
		if !ok || n > maxRange {
			return nil
		}
		q.kind, q.n, q.wait.Passed = seqPass, int(n), true
	case equalFold(verb, "NEXT") && len(count) == 0 && len(s.ahead) < maxNextAhead:
		// Values of one name must not overtake each other.
		same := func(o *seqRequest) bool { return bytes.Equal(o.name, name) }
		//mutant:w-overtakes by TestPipelinedRequestsWaitTogether -> if slices.ContainsFunc(s.ahead[:0], same) {
		if same(s.seq) || slices.ContainsFunc(s.ahead, same) {
			return nil
		}
		q.kind, q.n = seqNext, 1
	default:
		return nil
	}
	return q
}
