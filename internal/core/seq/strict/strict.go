// Package strict issues the values of strict sequences: a node takes positions only for requests that wait, and has no
// stock. All requests that wait when a write is decided share it, and are answered when ZooKeeper has acknowledged it.
// A request that comes later waits for the next write. docs/design.md has the reasons. Marks like (S26) name its rules.
//
// The invariant: no request is answered with positions of a write that ZooKeeper has not acknowledged. So a request
// that is sent after another was answered, by any node, gets a higher value.
//
// Three types to read:
//
//   - Strict is the mode: it decides the next write, and answers when the write has ended.
//   - batch is the requests that share a write.
//   - mode.Result is the answer to a request, which the request takes when it looks at the sequence again.
package strict

import (
	"fmt"
	"maps"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// Strict is the strict mode. A request with unknown outcome is answered so, and its positions are given up: another
// write may follow it, so nothing needs to be resolved.
type Strict struct {
	*mode.Series
	// RequestKeys are those of the sequence, as the node last read or wrote them, or as an earlier process has saved
	// them.
	RequestKeys []record.KeyEntry

	now func() int64 // see New
	// writers are the other nodes that wrote the sequence, each with the time when this node last read such a record,
	// ns of AtMost.
	writers map[string]int64
}

// New returns the mode of a strict sequence that this node has just learned of. now is AtMost for requests, ns: right
// also when the machine has just stood still.
func New(s *mode.Series, now func() int64) *Strict { return &Strict{Series: s, now: now} }

// maxCommit is the greatest number of positions that one write of a strict sequence takes.
const maxCommit = 1_000_000

// AnswerFor is the time after its arrival in which a request of a strict sequence is answered. An operator who says
// after a loss of data where the sequence goes on need not wait longer for nodes that stand still.
const AnswerFor = 2 * mode.Patience

// Serve returns the values that were written for a request, or makes it wait for a write.
func (s *Strict) Serve(r mode.Request, _, _ int64, to []worker.Run) (_ []worker.Run, needsRound bool, _ error) {
	now := s.now() // a clock that is late would let a node that stood still answer
	got, _ := r.Wait.Result.(*mode.Result)
	r.Wait.Result = nil
	switch {
	case got == nil:
		return s.WaitOrRefuse(r, now, to)
	case got.Err != nil:
		return to, false, got.Err
	case now-r.Wait.Since >= int64(AnswerFor):
		return to, false, unknown(textLate, got.Block.Len(), s.Name)
	}
	if s.AskedAt = now; !got.Again {
		s.Issued += r.N
		s.Unanswered -= r.N
	}
	return got.Block.AppendRuns(to, &got.Values), false, nil
}

// Oversized is that of mode.Issuing. The burst of the ceiling does not bound a strict sequence.
func (s *Strict) Oversized(n int64) *record.Refusal {
	if n > maxCommit {
		return mode.TooMany(maxCommit, "")
	}
	return nil
}

// Lacks is that of mode.Issuing.
func (s *Strict) Lacks() bool { return len(s.Waiting) > 0 }

// A strict sequence has nothing to do unless requests wait, and no node holds any of it.
func (*Strict) TakesAhead() bool { return false }

func (*Strict) Urgency(mode.Situation) mode.Urgency { return mode.Idle }

func (*Strict) Drop() {}

// Report is that of mode.Issuing.
func (s *Strict) Report(u *mode.Use) string {
	u.Unanswered = s.Unanswered
	return fmt.Sprintf("unanswered=%d", u.Unanswered)
}

// NextWrite is that of mode.Issuing. It takes the requests that share the write out of Waiting. nil: none
// wait, they must be refused, or none of them needs a write.
func (s *Strict) NextWrite(v mode.View, sit mode.Situation) *mode.Write {
	if len(s.Waiting) == 0 {
		return nil
	}
	all, rest := s.nextBatch(v, sit)
	// Without requests to share a write, a plan for one position shows whether the sequence is frozen or exhausted.
	taken, refusal := s.Known.PlanStrict(v.Incarnation(), max(all.n, 1), sit.SeqTime)
	if refusal != nil {
		s.Refuse(refusal, sit.AtMost)
		return nil
	}
	if len(all.requests) == 0 { // those that wait look at the series again
		return nil
	}
	s.Waiting = rest
	s.BeginMinute(sit.AtMost)
	w := mode.Write{Write: taken, Requests: all.requests}
	if v.RequestKeys != nil {
		w.RequestKeys = requestKeysAfter(v.RequestKeys, all.requests, w.Block.First)
	}
	return &w
}

// answerWithValues answers the requests of a write that was acknowledged, each with its part of the block.
func answerWithValues(w mode.Write, values sequence.Values) {
	next := w.Block.First
	for _, r := range w.Requests {
		r.Wait.Result = &mode.Result{Values: values, Block: positions.Block{First: next, End: next + r.N}}
		next += r.N
	}
}

// answerUnknown answers the requests of a write whose outcome is not known.
func answerUnknown(w mode.Write, name string) {
	refusal := unknown(textUnknown, w.Block.Len(), name)
	for _, r := range w.Requests {
		r.Wait.Result = &mode.Result{Err: refusal}
	}
}

// Texts for unknown.
const (
	textUnknown = "it is not known whether ZooKeeper has made the write"
	textLate    = "ZooKeeper has made the write, and this node is too late to answer"
)

// unknown: n positions may have been taken for requests that nobody can answer any more. why says why.
func unknown(why string, n int64, name string) *record.Refusal {
	return record.Refuse(record.Unknown, time.Second, "%s, so values of %s may be missing: %d. Retry, or try another node",
		why, name, n)
}

// longestPause is the longest pause of a strict sequence after tries in which other nodes were faster, for each of
// them. It is short, because those that were faster leave the sequence alone for longer.
const longestPause = 500 * time.Microsecond

// writerCountsFor is the time for which a node counts on another one, after it has read a write of that one. A node
// leaves the sequence to others for no longer, so that requests do not wait in vain.
const writerCountsFor = time.Second

// Pause is that of mode.Issuing. It is longer the more other nodes write.
func (s *Strict) Pause(now int64) time.Duration {
	return longestPause * time.Duration(max(1, s.othersSeen(now)))
}

// othersSeen returns the number of other nodes whose writes this node has read in the last writerCountsFor. A write
// that it read late may be older.
func (s *Strict) othersSeen(now int64) int {
	maps.DeleteFunc(s.writers, func(_ string, at int64) bool { return now-at >= int64(writerCountsFor) })
	return len(s.writers)
}

// Saw also notes the node that has written the record. An operator's write is no sign that others write, too.
func (s *Strict) Saw(v mode.View, _ *record.Record, sit mode.Situation) {
	if v.RequestKeys != nil {
		s.RequestKeys = v.RequestKeys.Entries
	}
	if by := record.WriterOf(v.Record.Nonce); by != "" && by != record.WriterOf(sit.Nonce) {
		if s.writers == nil {
			s.writers = make(map[string]int64)
		}
		s.writers[by] = sit.AtMost
		s.othersSeen(sit.AtMost) // forgets old ones
	}
}

// Wrote leaves the sequence to other nodes for about the time of a write if they write, too, and this node was fast.
// Else the node that is nearest to ZooKeeper's leader would always be the fastest.
func (s *Strict) Wrote(w mode.Write, v mode.View, sent, now int64, err error) (woken []mode.Request, leaveUpTo time.Duration) {
	switch {
	case err == nil: // no value is answered before: it must be higher than all that any node has answered (S26)
		s.Host.KnowWritten(w, now)
		s.Unanswered += w.Block.Len()
		answerWithValues(w, s.Values)
		if w.RequestKeys != nil {
			s.RequestKeys = w.RequestKeys.Entries
		}
		s.Last = new(v.After(w))
		if others := s.othersSeen(now); others > 0 {
			//mutant:strict-writes-too-often by TestPausesOfAStrictSequence -> leaveUpTo = min(time.Duration(others)*time.Duration(now-sent), writerCountsFor)
			leaveUpTo = min(time.Duration(others)*2*time.Duration(now-sent)+time.Microsecond, writerCountsFor)
		}
	case mode.NotMade(err):
		s.Waiting = append(w.Requests, s.Waiting...)
		return nil, 0
	default: // the positions are given up, because a later write may follow this one (S27)
		s.Unanswered += w.Block.Len()
		//mutant:s27-unknown-outcome by seqsim -> answerWithValues(w, s.Values)
		answerUnknown(w, s.Name)
	}
	return w.Requests, leaveUpTo
}
