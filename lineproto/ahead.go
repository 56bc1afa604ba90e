package lineproto

import (
	"bytes"
	"slices"

	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// A request that waits must not delay those behind it, which may be about other sequences: a pipeline for a hundred
// names would wait a hundred times, and another node sends PASS for all its clients on one connection. So while a
// request waits, the session looks at the input behind it, and executes the requests there before their turn: it calls
// Sequences.Take for them. They are answered in order all the same.

const (
	// maxPassAhead and maxNextAhead are the most requests that are executed before their turn.
	maxPassAhead, maxNextAhead = 1024, 128
	// aheadSize is the approximate size of such a request in bytes. All of them, with all that sessions gather, take at
	// most half of maxMemory.
	aheadSize = 512
)

// early is what a request got before its turn.
type early struct {
	runs []worker.Run
	err  error
}

// popAhead makes the first request that was executed before its turn the session's task. It returns false if there is
// none, or if the first one is not the request that these arguments describe.
func (s *session) popAhead(kind seqKind, name []byte, n int64) bool {
	if len(s.ahead) == 0 {
		return false
	}
	q := s.ahead[0]
	s.ahead = s.ahead[1:]
	s.aheadBytes -= q.size
	if q.kind != kind || int64(q.n) != n || !bytes.Equal(q.name, name) {
		s.ahead, s.aheadBytes = nil, 0 // not the lines that were looked at
		return false
	}
	s.seq, s.task = q, taskSequence
	return true
}

// lookAhead executes the requests at the beginning of in, which follows the request that waits. It stops at a request
// that must wait for its turn: see aheadOf.
func (s *session) lookAhead(in []byte) {
	if s.multi != nil || s.seq.kind != seqPass && s.seq.kind != seqNext && s.seq.kind != seqIncr {
		return
	}
	for s.srv.memory.Load() < maxMemory/2 {
		words, size := wordsOf(in[s.aheadBytes:])
		q := s.aheadOf(words)
		if q == nil {
			break
		}
		q.size = size
		s.aheadBytes += size
		s.ahead = append(s.ahead, q)
		runs, err := s.srv.cfg.Sequences.Take(&q.wait, q.name, q.n, q.kind == seqPass, q.wake, nil)
		if q.pending = isPending(err); !q.pending {
			q.early = &early{runs, err}
		}
	}
	s.countMemory()
}

// wordsOf returns the words of the request at the beginning of in, in either framing, and how many bytes it has. It
// returns none if the request is not whole or has many words.
func wordsOf(in []byte) (words [][]byte, size int) {
	if len(in) > 0 && in[0] == '*' {
		words, size, _, _ = new(arrayParser).parse(in, nil)
		return words, size
	}
	end := bytes.IndexByte(in, '\n')
	if end < 0 || end > maxLine {
		return nil, 0
	}
	rest, _ := cutCR(in[:end])
	for len(rest) > 0 && len(words) <= maxAheadWords {
		var word []byte
		word, rest = cutWord(rest)
		words = append(words, word)
	}
	return words, end + 1
}

// maxAheadWords is the most words of a request that is executed before its turn.
const maxAheadWords = 1 + passWords

// aheadOf returns the request of these words, or nil if it must wait for its turn. That is any request but PASS, and
// NEXT or INCR for one value of a name that no earlier request waits for.
func (s *session) aheadOf(words [][]byte) *seqRequest {
	if len(words) < 2 || len(words) > maxAheadWords {
		return nil
	}
	verb, name := words[0], words[1]
	if sequence.CheckName(name) != nil || !s.rights.MayUse(name) {
		return nil
	}
	q := newSeqRequest(s.waker)
	q.name, q.times, q.n = append(q.name, name...), 1, 1
	if len(words) == 1+passWords && equalFold(verb, "PASS") && len(s.ahead) < maxPassAhead {
		n, of, e := s.passed(words[1:])
		if e != nil {
			return nil
		}
		q.kind, q.n, q.wait.Passed = seqPass, int(n), of
		return q
	}
	if len(words) > 2 {
		return nil
	}
	// Values of one name must not overtake each other.
	same := func(o *seqRequest) bool { return bytes.Equal(o.name, name) }
	if len(s.ahead) >= maxNextAhead || same(s.seq) || slices.ContainsFunc(s.ahead, same) {
		return nil
	}
	switch {
	case equalFold(verb, "NEXT"):
		q.kind = seqNext
	case equalFold(verb, "INCR"):
		q.kind = seqIncr
	default:
		return nil
	}
	return q
}
