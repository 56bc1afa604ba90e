package seq

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// A strict sequence has no stock. All requests that wait when a write is decided share it, and are answered when
// ZooKeeper has acknowledged it. A request that comes later waits for the next write. So a request that is sent
// after another was answered, by any node, gets a higher value.

// strict is the strict mode. A request with unknown outcome is answered so, and its positions are given up: another
// write may follow it, so nothing needs to be resolved.
type strict struct {
	*series
	// writers are the other nodes that wrote the sequence, each with the time when this node last read it, in
	// ns of AtMost.
	writers map[string]int64
}

// maxCommit is the greatest number of positions that one write of a strict sequence takes.
const maxCommit = 1_000_000

// AnswerFor is the time after its arrival in which a request of a strict sequence is answered. An operator who says
// after a loss of data where the sequence goes on need not wait longer for nodes that stand still.
const AnswerFor = 2 * mode.Patience

// Serve returns the values that were written for a request, or makes it wait for a write.
func (s *strict) Serve(r mode.Request, _, _ int64, to []worker.Run) (_ []worker.Run, needsRound bool, _ error) {
	now := s.ordered.Now() // a clock that is late would let a node that stood still answer
	got, _ := r.Wait.Result.(*mode.Result)
	r.Wait.Result = nil
	switch {
	case got == nil:
		return s.WaitOrRefuse(r, now, to)
	case got.Err != nil:
		return to, false, got.Err
	case now-r.Wait.Since >= int64(AnswerFor):
		return to, false, unknown(got.Block.Len(), s.Name)
	}
	if s.AskedAt = now; !got.Again {
		s.Issued += r.N
		s.unanswered -= r.N
	}
	return got.Block.AppendRuns(to, &got.Values), false, nil
}

func (s *strict) Oversized(n int64) *record.Refusal {
	if n > maxCommit {
		return mode.TooMany(maxCommit, "")
	}
	return nil
}

func (s *strict) Lacks() bool { return len(s.Waiting) > 0 }

// A strict sequence has nothing to do unless requests wait, and no node holds any of it.
func (*strict) TakesAhead() bool { return false }

func (*strict) Urgency(mode.Situation) mode.Urgency { return mode.Idle }

func (*strict) Drop() {}

func (s *strict) Report(u *mode.Use) string {
	u.Unanswered = s.unanswered
	return fmt.Sprintf("unanswered=%d", u.Unanswered)
}

// NextWrite is that of mode.Issuing. It takes the requests that share the write out of Waiting. nil: none
// wait, they must be refused, or none of them needs a write.
func (s *strict) NextWrite(v mode.View, sit mode.Situation) *mode.Write {
	if len(s.Waiting) == 0 {
		return nil
	}
	all, rest := s.share(v, sit)
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
	s.minuteRate.roll(s.Issued, sit.AtMost)
	w := mode.Write{Write: taken, Requests: all.requests}
	if v.RequestKeys != nil {
		w.RequestKeys = requestKeysAfter(v.RequestKeys, all.requests, w.Block.First)
	}
	return &w
}

// share divides the requests that wait: those that share the next write, and the rest, which look at the series again.
// It answers those that get no part of any write: they have a key with a value, or want more than is left.
func (s *strict) share(v mode.View, sit mode.Situation) (all batch, rest []mode.Request) {
	waiting, noLoss := s.Waiting, s.Known.Incarnation == v.Incarnation()
	if noLoss { // else the keys may be older than those that were lost
		waiting, rest = s.repeat(v)
	}
	left := s.Known.Positions() - s.Known.Next
	full := false
	for _, r := range waiting {
		late := sit.AtMost-r.Wait.Since >= int64(mode.Patience)
		switch {
		case r.N > left && left > 0 && noLoss: // others may get what is left
			r.Wait.Result = &mode.Result{Err: s.Known.Exhausted()}
			rest = append(rest, r)
		case late, r.N == 0: // SEQ asks for no value
			rest = append(rest, r)
		case full, !all.add(r, min(left, maxCommit)):
			full = true
			rest = append(rest, r)
		}
	}
	return all, rest
}

// batch is the requests that share a write. They take n positions, and withKeys of them have keys.
type batch struct {
	requests []mode.Request
	n        int64
	withKeys int
}

// add adds a request, if a write of most positions can have it too and all its keys are remembered. It reports whether
// that is so.
func (b *batch) add(r mode.Request, most int64) bool {
	withKeys := b.withKeys
	if r.Wait.Key != "" {
		withKeys++
	}
	if b.n+r.N > most || withKeys > record.MaxRequestKeys {
		return false
	}
	b.requests, b.n, b.withKeys = append(b.requests, r), b.n+r.N, withKeys
	return true
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
	refusal := unknown(w.Block.Len(), name)
	for _, r := range w.Requests {
		r.Wait.Result = &mode.Result{Err: refusal}
	}
}

// strictPause is the longest pause of a strict sequence after tries in which other nodes were faster, for each of them.
// It is short, because those that were faster leave the sequence alone for longer.
const strictPause = 500 * time.Microsecond

// writerCountsFor is the time for which a node counts on another one that has written the same strict sequence. A node
// leaves the sequence to others for no longer, so that requests do not wait in vain.
const writerCountsFor = time.Second

func (s *strict) Pause(now int64) time.Duration {
	return strictPause * time.Duration(max(1, s.others(now)))
}

// others returns how many other nodes have written the sequence lately.
func (s *strict) others(now int64) int {
	maps.DeleteFunc(s.writers, func(_ string, at int64) bool { return now-at >= int64(writerCountsFor) })
	return len(s.writers)
}

// Saw also notes the node that has written the record. An operator's write is no sign that others write, too.
func (s *strict) Saw(v mode.View, _ *record.Record, sit mode.Situation) {
	if v.RequestKeys != nil {
		s.requestKeys = v.RequestKeys.Entries
	}
	if by := record.WriterOf(v.Record.Nonce); by != "" && by != record.WriterOf(sit.Nonce) {
		if s.writers == nil {
			s.writers = make(map[string]int64)
		}
		s.writers[by] = sit.AtMost
		s.others(sit.AtMost) // forgets old ones
	}
}

// Wrote leaves the sequence to other nodes for about the time of a write if they write, too, and this node was fast.
// Else the node that is nearest to ZooKeeper's leader would always be the fastest.
func (s *strict) Wrote(w mode.Write, v mode.View, sent, now int64, err error) (woken []mode.Request, leaveUpTo time.Duration) {
	switch {
	case err == nil: // no value is answered before: it must be higher than all that any node has answered (S26)
		s.KnowWritten(w, now)
		s.unanswered += w.Block.Len()
		answerWithValues(w, s.Values)
		if w.RequestKeys != nil {
			s.requestKeys = w.RequestKeys.Entries
		}
		s.Last = new(v.After(w))
		if others := s.others(now); others > 0 {
			//mutant:strict-writes-too-often by TestPausesOfAStrictSequence -> leaveUpTo = min(time.Duration(others)*time.Duration(now-sent), writerCountsFor)
			leaveUpTo = min(time.Duration(others)*2*time.Duration(now-sent)+time.Microsecond, writerCountsFor)
		}
	case mode.NotMade(err):
		s.Waiting = append(w.Requests, s.Waiting...)
		return nil, 0
	default: // the positions are given up, because a later write may follow this one (S27)
		s.unanswered += w.Block.Len()
		//mutant:s27-unknown-outcome by seqsim -> answerWithValues(w, s.Values)
		answerUnknown(w, s.Name)
	}
	return w.Requests, leaveUpTo
}

// waitWithKeys reports whether a request with a key waits. Mu is held.
func (s *series) waitWithKeys() bool {
	return slices.ContainsFunc(s.Waiting, func(r mode.Request) bool { return r.Wait.Key != "" })
}

// repeat answers the requests with keys that have a value already, and returns the others. Of requests with one key
// that has none, all but the first wait on: they get its value from the keys.
func (s *strict) repeat(v mode.View) (fresh, rest []mode.Request) {
	if !s.waitWithKeys() {
		return s.Waiting, nil
	}
	seen := make(map[string]bool)
	for _, r := range s.Waiting {
		key := r.Wait.Key
		if key == "" {
			fresh = append(fresh, r)
			continue
		}
		p, found := int64(0), v.RequestKeys != nil
		if found {
			p, found = v.RequestKeys.Find(record.HashKey(key))
		}
		switch {
		case found:
			r.Wait.Result = &mode.Result{Values: s.Values, Block: positions.Block{First: p, End: p + 1}, Again: true}
			rest = append(rest, r)
		case seen[key], v.RequestKeys == nil: // asked twice at once, or it came after the keys were read
			rest = append(rest, r)
		default:
			seen[key] = true
			fresh = append(fresh, r)
		}
	}
	return fresh, rest
}

// requestKeysAfter returns the request keys after a write that gives the positions from first on to requests. It
// returns nil if none of them has a key.
func requestKeysAfter(k *record.RequestKeys, requests []mode.Request, first int64) *record.RequestKeys {
	var added []record.KeyEntry
	for _, r := range requests {
		if r.Wait.Key != "" {
			added = append(added, record.KeyEntry{Key: record.HashKey(r.Wait.Key), Position: first})
		}
		first += r.N
	}
	if len(added) == 0 {
		return nil
	}
	return k.With(added)
}
