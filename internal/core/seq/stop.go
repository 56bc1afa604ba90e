package seq

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// A node that stops keeps what it issues in keepSeconds, and at least keepValues of a sequence that is used now
// and then. So it finds values in its journal when it starts again. The rest goes back to ZooKeeper.
const keepSeconds, keepValues = 15, 15

// giveBack ends the sequences of a node that stops. The journal keeps what the next process needs in its first
// seconds. The rest goes back to ZooKeeper, where nobody has taken a block since: first out of the journal, then into
// ZooKeeper (S33). Requests must have ended before.
func (rs *Rounds) giveBack(ctx context.Context) error {
	left := rs.endOwnerships(ctx)
	return errors.Join(left, rs.giveBackLeftovers(ctx))
}

// endOwnerships gives back all sections that this node owns.
func (rs *Rounds) endOwnerships(ctx context.Context) error {
	rs.issuer.ordered.Stop()
	rs.follower.noteConnection()
	if fo := &rs.follower; !fo.joined || fo.session == 0 || fo.seen.State == nil {
		return nil
	}
	var owned []*series
	for _, s := range rs.issuer.series.list() {
		s.Mu.Lock()
		s.Waiting = nil // requests have ended
		if s.owned() != nil {
			owned = append(owned, s)
		}
		s.Mu.Unlock()
	}
	rest, err := rs.renewTogether(ctx, owned)
	if err != nil {
		return err
	}
	for _, s := range rest { // records that have changed keep those that are written together with them, too
		if err := rs.follower.roundIO().work(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// returnsInOne is the most records that go back in one transaction, and returnsAtOnce the most that leave the journal
// before they go back. If the time is over, the journal keeps the others.
const returnsInOne, returnsAtOnce = 100, 1000

func (rs *Rounds) giveBackLeftovers(ctx context.Context) (err error) {
	all := rs.collectLeftovers()
	giving := slices.DeleteFunc(slices.Clone(all.list), func(r *leftover) bool { return r.give.Block.Len() <= 0 })
	if len(giving) > 0 {
		err = rs.mayGiveBack()
	}
	for some := range slices.Chunk(giving, returnsAtOnce) {
		if err != nil {
			break
		}
		var saved bool
		if saved, err = rs.giveSomeBack(ctx, &all, some); !saved {
			return err // that write may still run, and there must be no other beside it
		}
	}
	return errors.Join(err, rs.saveLeftovers(&all, all.list)) // it has again what could not be given back
}

// mayGiveBack returns an error if nothing may go back.
func (rs *Rounds) mayGiveBack() error {
	rs.follower.noteConnection()
	rw := rs.follower.roundIO()
	if rw.session == 0 {
		return errors.New("ZooKeeper is not connected")
	}
	if !rs.follower.joined || rw.losses.Known() == nil || rw.losses.Owes() || rw.unconfirmed() > 0 {
		return errors.New("this node may not write now")
	}
	return nil
}

// giveSomeBack gives some leftovers back. An error means that no others can be given back. saved is false if the
// journal could not be written. Then nothing goes back.
func (rs *Rounds) giveSomeBack(ctx context.Context, all *leftovers, some []*leftover) (saved bool, err error) {
	rw := rs.follower.roundIO()
	err = rw.each(some, func(some []*leftover) error { return rw.planReturns(ctx, some) })
	if err != nil && rs.issuer.outlasts() { // nothing goes back: it stays in the journal
		keepInJournal(some)
		return true, err
	}
	if unsaved := rs.saveLeftovers(all, some); unsaved != nil {
		return false, errors.Join(unsaved, err)
	}
	err = errors.Join(err, rw.each(some, func(some []*leftover) error { return rw.makeReturns(ctx, some) }))
	for _, r := range some {
		r.write = nil
	}
	return true, err
}

// each calls f for some leftovers, several times at once.
func (rw roundIO) each(some []*leftover, f func([]*leftover) error) error {
	var group errgroup.Group
	group.SetLimit(rw.issuer.cfg.Parallel)
	for some := range slices.Chunk(some, returnsInOne) {
		group.Go(func() error { return f(some) })
	}
	return group.Wait()
}

// leftovers is what a node that stops holds of all sequences.
type leftovers struct {
	list []*leftover
	// node is the identity of the node in the journal, "" if nothing must be written there.
	node string
	// The first write also says that all entries of the journal are up to date, so it has these: dropped are the
	// sequences of which the journal may have an entry, although the node holds nothing of them, and due the leftovers
	// of which it may have another entry.
	dropped []*series
	due     []*leftover
}

// leftover has the positions of a sequence that a node holds when it stops.
type leftover struct {
	s     *series
	holds held             // all that the node holds of it; give is its end
	give  record.Remainder // empty: nothing can be given back
	// returns: write gives that back. Else the journal keeps it. With 100,000 leftovers, only some have a write at a
	// time.
	returns bool
	write   *part
}

// keepInJournal makes the journal keep some leftovers.
func keepInJournal(some []*leftover) {
	for _, r := range some {
		r.returns = false
	}
}

// outlasts reports whether what the node holds outlasts the process.
func (i *Issuer) outlasts() bool { return i.journal != nil && !i.cfg.Tenure.ReleasesAtStop() }

// collectLeftovers takes what the node holds out of all sequences.
func (rs *Rounds) collectLeftovers() (all leftovers) {
	seconds, values := int64(0), int64(0)
	if rs.issuer.outlasts() {
		seconds, values = keepSeconds, keepValues
	}
	var due []*series // the list lacks those that were forgotten
	if rs.issuer.journal != nil {
		due, all.node = rs.issuer.journal.popChanged()
	}
	now := rs.issuer.now()
	for _, s := range rs.issuer.series.list() {
		s.Mu.Lock()
		if s.kept != nil {
			all.list = append(all.list, &leftover{s: s, holds: *s.kept})
		} else if m := s.stocked(); m != nil {
			if r := m.takeLeftover(seconds, values, now); r != nil {
				all.list = append(all.list, r)
			}
		}
		s.Mu.Unlock()
	}
	all.splitForFirstWrite(due, rs.issuer.series.list())
	return all
}

// takeLeftover takes out all that the node holds. It returns nil if that is nothing. The node keeps as much as it
// issues in the given seconds, and at least the given values if the sequence was used in the last minute. give is the
// rest.
func (s *segment) takeLeftover(seconds, values, now int64) *leftover {
	all := *s.held(s.stock.After(0))
	split := s.stock.After(seconds * s.secondRate.update(s.Issued, now))
	if now-s.AskedAt < int64(time.Minute) { // it is used, now and then
		split = max(split, s.stock.After(values))
	}
	if len(all.Blocks) > 0 { // requests have ended: what is left was not issued
		s.traceBound(s.stock.After(0))
	}
	give, may := s.takeRest()
	if give.Block.First = max(give.Block.First, split); !may {
		give = record.Remainder{}
	}
	if len(all.Blocks) == 0 {
		return nil
	}
	return &leftover{s: s.series, holds: all, give: give}
}

// splitForFirstWrite finds what the first write must have, by the sequences that are due in the journal and all others.
func (all *leftovers) splitForFirstWrite(due, others []*series) {
	isDue, listed := make(map[string]bool, len(due)), make(map[string]bool, len(all.list))
	for _, s := range due {
		isDue[s.Name] = true
	}
	for _, r := range all.list {
		if listed[r.s.Name] = true; isDue[r.s.Name] {
			all.due = append(all.due, r)
		}
	}
	all.dropped = slices.DeleteFunc(slices.Concat(due, others), func(s *series) bool { return listed[s.Name] })
}

// planReturns reads the records of some leftovers, and decides which go back.
func (rw roundIO) planReturns(ctx context.Context, some []*leftover) error {
	keepInJournal(some)
	paths := []string{record.ClusterPath, record.StatePath}
	for _, r := range some {
		paths = append(paths, record.Path(r.s.Name))
	}
	if err := rw.issuer.cfg.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
		return err
	}
	sent := rw.issuer.now()
	found, err := rw.issuer.cfg.Store.GetAll(ctx, paths...)
	if err != nil {
		return err
	}
	v := view{View: mode.View{SentAt: sent, AnsweredAt: rw.issuer.cfg.Elapsed.Now()}}
	if v.Snapshot, err = record.ParseSnapshot(found[:2]); err != nil {
		return err
	}
	if rw.losses.Finding(v.Snapshot) != record.Good {
		return nil
	}
	for k, r := range some {
		found := found[2+k]
		if was, err := record.Parse(found.Data); found.Found && err == nil {
			v.Record, v.Stat = &was, found.Stat
			r.plan(v.View, rw.issuer.cfg.Nonce(), rw.issuer.cfg.By)
		}
	}
	return nil
}

// plan decides whether the leftover goes back, by what was read.
func (r *leftover) plan(v mode.View, nonce, by string) {
	after, possible := v.Record.ReturnOf(r.give, v.Incarnation())
	if r.returns = possible; possible {
		r.write = &part{r.s, v, stepOf(mode.Write{Write: record.Write{Record: after}}, r.s.Name, v, nonce, by)}
	}
}

// makeReturns gives some leftovers back in one transaction, as planned. If something has changed since, it reads again.
func (rw roundIO) makeReturns(ctx context.Context, some []*leftover) error {
	for range maxTries {
		some = slices.DeleteFunc(slices.Clone(some), func(r *leftover) bool { return !r.returns })
		if len(some) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			keepInJournal(some)
			return errors.New("the time is over")
		}
		var parts []part
		for _, r := range some {
			parts = append(parts, *r.write)
		}
		err := rw.commitTogether(ctx, parts[0].v.CheckOps(), parts)
		switch {
		case mode.NotMade(err):
			err = rw.planReturns(ctx, some)
		case err == nil, errors.Is(err, store.ErrUnreachable): // it may have been made
			return err
		}
		if err != nil {
			keepInJournal(some)
			return err
		}
	}
	keepInJournal(some)
	return nil
}

// saveLeftovers writes into the journal the part of some leftovers that the node keeps: what is not given back.
func (rs *Rounds) saveLeftovers(all *leftovers, some []*leftover) error {
	j := rs.issuer.journal
	if j == nil {
		return nil
	}
	if rs.issuer.cfg.Tenure.ReleasesAtStop() {
		return rs.inTime(j.remove)
	}
	return rs.inTime(func() error {
		if all.node == "" {
			return nil
		}
		changes := entrylog.Entries{}
		for _, s := range all.dropped {
			//mutant:s12-dropped-in-the-journal-of-a-stop by TestFirstWriteOfAStopRemovesWhatWasDropped -> _ = s
			changes[s.Name] = nil
		}
		//mutant:s12-replaced-in-the-journal-of-a-stop by TestFirstWriteOfAStopRemovesWhatWasDropped -> all.due = nil
		some = slices.Concat(all.due, some)
		all.dropped, all.due = nil, nil
		if j.log.IsBlank() {
			some = all.list
		}
		for _, r := range some {
			keep := r.holds
			//mutant:s33-given-back-and-kept by seqsim -> if false {
			if r.returns { // out of the journal before it is returned (S33)
				keep = keep.below(r.give.Block.First)
			}
			changes[r.s.Name] = keep.entry()
		}
		return rs.issuer.writeJournal(changes, all.node, rs.issuer.progress.Load().knewAllAt)
	})
}

// below returns the part of h below p. If nothing is left of the last block, another node may give the block before
// it back. Then the next position falls, but never below what this node keeps. So an empty last block ends there.
func (h held) below(p int64) held {
	var blocks []positions.Block
	for _, b := range h.Blocks {
		if b.End = min(b.End, p); b.Len() > 0 {
			blocks = append(blocks, b)
		}
	}
	h.Last.End, h.Blocks = min(h.Last.End, p), blocks
	//mutant:s33-claims-what-is-given-back by TestJournalClaimsNoBlockThatWasGivenBack -> if false {
	if h.Last.Len() <= 0 && len(blocks) > 0 {
		end := blocks[len(blocks)-1].End
		h.Last = positions.Block{First: end, End: end}
	}
	return h
}
