package seq

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// segment is the segment mode: a node takes blocks of positions, and issues from memory.
type segment struct {
	*series
	stock positions.Stock
	// lastBlock is the last block that the node took, in the incarnation lastIncarnation of the sequence.
	lastBlock       positions.Block
	lastIncarnation int64
	// target is the number of positions that the node would issue in the supply time (positions.Demand.Supply), at the
	// rate that it had when it last took a block, and Demand.Share at most.
	target int64
	// attempts are the writes with unknown outcome. All were made at the version tried.
	attempts []mode.Write
	tried    int32

	// unread: the stock is from an earlier process, and the node has not read the record since. If ZooKeeper answers,
	// the node must read the record before it issues (S32).
	unread bool
	// wakeBelow: when only so many positions are left below the bound of the stock, the journal must raise the bound.
	// secondRate counts what is issued in a second, which decides how far.
	wakeBelow  int64
	secondRate secondRate
}

// newSegment returns the mode of a sequence of which the node holds nothing.
func newSegment(s *series) *segment {
	m := &segment{series: s}
	if s.journal == nil {
		m.stock.SetBound(math.MaxInt64)
	}
	return m
}

// Serve is that of mode.Issuing: it takes the values from the stock.
func (s *segment) Serve(r mode.Request, now, knewAllAt int64, to []worker.Run) (_ []worker.Run, needsRound bool, _ error) {
	switch {
	case r.Wait.Key != "":
		return to, false, mode.NoKeys(s.Name)
	//mutant:s3-overtaking by TestTake -> case false:
	case len(s.Waiting) > 0 && r.Wait.Since == 0: // no request overtakes those that wait (S3)
		return s.await(r, now, to)
	//mutant:s32-unread by seqsim -> case false:
	case s.mustRead(): // a journal counts after its record was read (S32)
		return s.WaitOrRefuse(r, now, to)
	// An operator may have deleted it, or raised the next value (S5).
	//mutant:s5-no-hold by TestTake -> case false:
	case s.stock.Left() > 0 && !s.isRecent(max(knewAllAt, s.recordReadAt), now):
		s.Refuse(mode.NoBlock(textHold), now)
		return s.WaitOrRefuse(r, now, to) // returns that refusal
	}
	var room [4]positions.Block
	blocks, ok := room[:0], true
	if r.Whole {
		room[0], ok = s.stock.TakeWhole(r.N)
		blocks = room[:1]
	} else {
		blocks, ok = s.stock.Take(r.N, blocks)
	}
	if free := s.stock.Free(); !ok || free <= s.wakeBelow && free < s.stock.Left() {
		s.journal.wake(s.series, !ok)
	}
	if !ok {
		return s.await(r, now, to)
	}
	for _, b := range blocks {
		to = b.AppendRuns(to, &s.Values)
	}
	s.Issued += r.N
	s.AskedAt = now
	return to, s.MayTry(now) && s.short(), nil
}

// mustRead reports whether the node must read the record before it issues what it holds.
func (s *segment) mustRead() bool { return s.unread || s.Known.HasMapKey() && s.mapKey == nil }

// await makes a request wait that the node cannot answer now. If the stock has its positions, the request waits for the
// disk, so that a refusal of ZooKeeper does not concern it. It needs a round only if its positions lie below the bound:
// then only the queue holds it up. If the stock lacks positions, the request waits for ZooKeeper. The bool is true if
// the request needs a round.
func (s *segment) await(r mode.Request, now int64, to []worker.Run) ([]worker.Run, bool, error) {
	if !s.has(r) {
		return s.WaitOrRefuse(r, now, to)
	}
	err := s.Enqueue(r, now, textDisk)
	return to, r.N <= s.stock.Free() && err == sequence.ErrPending, err
}

// isRecent reports whether the node may issue by what it knew at that time (S5).
func (s *segment) isRecent(knewAt, now int64) bool {
	return s.Known.Endless() || now-knewAt < int64(s.Known.Hold())
}

// has reports whether the stock has the positions of a request, also if some are above its bound.
func (s *segment) has(r mode.Request) bool {
	if r.Whole {
		return s.stock.Longest() >= r.N
	}
	return s.stock.Left() >= r.N
}

// TakesAhead reports whether the mode has a last block, perhaps an earlier process's.
func (s *segment) TakesAhead() bool { return s.lastBlock.Len() > 0 }

// Urgency is that of mode.Issuing: a block may be needed, or the record must be refreshed.
func (s *segment) Urgency(sit mode.Situation) mode.Urgency {
	switch {
	case !s.TakesAhead():
		return mode.Idle
	case s.short(), s.wantsMore(sit.SeqTime):
		return mode.Needed
	case sit.SeqTime-s.Known.CreditAt >= s.refreshAfter(sit).Milliseconds():
		return mode.Refresh
	}
	return mode.Idle
}

func (s *segment) refreshAfter(sit mode.Situation) time.Duration {
	return refreshInterval(sit.Spread, time.Duration(sit.AtMost-s.AskedAt))
}

func (s *segment) Lacks() bool { return s.needs().lacking }

// Saw finds out which of the attempts was written. At most one was, because all were made at one version (S2). If
// another write followed, the blocks of all attempts are lost. Then Saw obeys an operator who has raised the next
// value.
func (s *segment) Saw(v mode.View, before *record.Record, _ mode.Situation) {
	s.unread = false
	// If nothing was written, an attempt may still arrive: the next one is made at the same version.
	if len(s.attempts) > 0 && (v.Stat.Version != s.tried || v.Record.Nonce != before.Nonce) {
		for _, t := range s.attempts {
			if t.Record.Nonce == v.Record.Nonce {
				s.accept(t, 0)
			}
		}
		s.attempts = nil
	}
	left := s.stock.Left()
	if s.stock.SkipTo(v.Record.RaisedTo); s.stock.Left() < left {
		//mutant:s30-keeps-what-was-raised by TestWhatIsGivenUpLeavesTheJournal ->
		s.journal.wake(s.series, false)
	}
}

func (s *segment) accept(w mode.Write, ackedAt int64) {
	s.series.KnowWritten(w, ackedAt)
	s.attempts = nil
	if w.Block.Len() > 0 {
		s.lastBlock, s.lastIncarnation = w.Block, w.Record.Incarnation
		s.stock.Add(w.Block)
		s.journal.wake(s.series, false) // else the block is lost at kill -9
	}
}

// NextWrite is that of mode.Issuing: a write that takes a block, or one that refreshes the record.
func (s *segment) NextWrite(v mode.View, sit mode.Situation) *mode.Write {
	want := s.needs()
	if want.lacking || s.TakesAhead() && (s.short() || s.wantsMore(sit.SeqTime)) {
		c, refusal := s.Known.Plan(v.Incarnation(), s.noteDemand(sit, want.all).Size(), want.least, sit.SeqTime)
		if refusal != nil {
			s.Refuse(refusal, sit.AtMost)
			return nil
		}
		return &mode.Write{Write: c}
	}
	if r, due := s.Known.Refresh(v.Incarnation(), sit.SeqTime, s.refreshAfter(sit)); due {
		return &mode.Write{Write: record.Write{Record: r}}
	}
	return nil
}

// noteDemand returns what the size of the next block depends on. It sets target, and begins the next window if that is
// due.
func (s *segment) noteDemand(sit mode.Situation, need int64) positions.Demand {
	budget := s.Known.CeilingInForce().At(s.Known.Budget(), sit.SeqTime)
	d := positions.Demand{
		Rate: s.PerSecond(sit.AtMost), Need: need,
		Supply:   max(sit.Supply(s.Known), sit.Spread), // else the node would write more often than spread allows
		Smallest: s.Known.Block, Last: s.lastBlock.Len(), Credit: budget.Credit,
		Left: s.Known.Positions() - s.Known.Next,
	}
	s.BeginMinute(sit.AtMost)
	s.target = min(int64(min(d.Rate*d.Supply.Seconds(), positions.MaxBlock)), d.Share())
	return d
}

// demand has the numbers of positions that the requests which wait need.
type demand struct {
	// all is the positions that they ask for together.
	all int64
	// least is the smallest block with which the node can serve one of them. It is 1 if nobody waits.
	least int64
	// lacking: the stock does not have enough for all of them.
	lacking bool
}

// needs returns what the requests that wait need.
func (s *segment) needs() demand {
	left, longest := s.stock.Left(), s.stock.Longest()
	q := demand{least: math.MaxInt64}
	for _, r := range s.Waiting {
		q.all += r.N
		if r.Whole {
			q.least = min(q.least, r.N)
			q.lacking = q.lacking || r.N > longest
		} else {
			q.least = min(q.least, r.N-left)
		}
	}
	q.lacking = q.lacking || q.all > left
	if len(s.Waiting) == 0 {
		q.least = 1
	}
	q.least = max(q.least, 1)
	return q
}

// short reports whether the node should take a block: a tenth of the last one is used, and there is
// no other one in reserve.
func (s *segment) short() bool { return s.stock.Left() < nineTenths(s.lastBlock.Len()) }

// wantsMore reports whether the node has less than it issues in the supply, although it is not short: a block is
// smaller than that, because it is a quarter of the credit at most. It takes another one only if half of the burst
// may be taken, so that other nodes find some. now is a sequence time.
func (s *segment) wantsMore(now int64) bool {
	c := s.Known.CeilingInForce()
	return s.stock.Left() < nineTenths(s.target) && c.At(s.Known.Budget(), now).Credit >= c.Burst()/2
}

func nineTenths(n int64) int64 { return n - n/10 }

// maxAttempts is the number of writes with unknown outcome that a node remembers for a sequence. The block
// of an older one is lost if it was written.
const maxAttempts = 8

// Wrote is that of mode.Issuing. A write with unknown outcome becomes one of the attempts.
func (s *segment) Wrote(w mode.Write, v mode.View, _, now int64, err error) (woken []mode.Request, leaveUpTo time.Duration) {
	switch {
	case err == nil:
		s.accept(w, now)
	case mode.NotMade(err):
		return nil, 0
	case errors.Is(err, store.ErrUnreachable): // if it was written, its block is ours all the same
		s.attempts, s.tried = append(s.attempts[max(0, len(s.attempts)+1-maxAttempts):], w), v.Stat.Version
	}
	return s.TakeWaiting(), 0
}

func (s *segment) Pause(int64) time.Duration { return mode.Backoff(s.FailedRounds) }

func (s *segment) Drop() { _, _ = s.takeRest() }

// takeRest drops the positions that the node holds. It returns those at the end of the stock that follow each other, if
// the node can give them back.
func (s *segment) takeRest() (rest record.Remainder, ok bool) {
	tail := s.stock.Tail()
	s.stock.Drop()
	//mutant:s30-keeps-what-was-dropped by TestWhatIsGivenUpLeavesTheJournal ->
	s.journal.wake(s.series, false)
	ok = len(s.attempts) == 0 && s.TakesAhead() && tail.Len() > 0 && tail.End == s.lastBlock.End
	s.lastBlock, s.attempts, s.unread = positions.Block{}, nil, false
	return record.Remainder{ID: s.Known.ID, Incarnation: s.lastIncarnation, Block: tail}, ok
}

func (s *segment) Report(u *mode.Use) string {
	u.Held, u.Block = s.stock.Left(), s.lastBlock
	return fmt.Sprintf("held=%d ceiling=%d", u.Held, s.Known.CeilingInForce())
}
