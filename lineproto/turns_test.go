package lineproto

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

func TestSlice(t *testing.T) {
	for _, row := range []struct {
		name           string
		lacks, waiting int
		scarce         bool
		want           int
	}{
		{"IDs are plenty", 10_000, 5000, false, maxSlice},
		{"alone", 10_000, 1, true, maxSlice},
		{"ten share a round", 10_000, 10, true, roundOfIDs / 10},
		{"a thousand get little", 10_000, 1000, true, minSlice},
		{"a small order is not cut up", smallOrder, 1000, true, smallOrder},
		{"nor is the rest of a large one", 100, 1000, true, 100},
		{"other work", 0, 1000, true, minSlice},
	} {
		if got := turnSize(row.lacks, row.waiting, row.scarce); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestAtOnce(t *testing.T) {
	for _, row := range []struct {
		name          string
		waiting       []int // how many IDs they lack
		taken, scarce bool
		want          int
	}{
		{"IDs are plenty", []int{5000, 100}, true, false, maxSlice},
		{"nobody waits", nil, false, true, tinyOrder},
		{"somebody waits", []int{5000, 5000}, false, true, tinyOrder},
		{"somebody with few IDs waits", []int{5000, 1}, false, true, 0},
		{"the only one has the turn", []int{5000}, true, true, 0},
	} {
		var q turns
		for _, lacks := range row.waiting {
			q.join(&place{}, lacks, false)
		}
		if row.taken {
			q.next(numRanks)
		}
		q.note(0, row.scarce)
		if got := q.atOnce(); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestAdmits(t *testing.T) {
	for _, row := range []struct {
		name                string
		backlog, n, ceiling int64
		halfClosed, want    bool
	}{
		{"room", 3_000_000, 10_000, 4_096_000, false, true},
		{"the last that fits", 4_086_000, 10_000, 4_096_000, false, true},
		{"one more", 4_086_001, 10_000, 4_096_000, false, false},
		{"room, half closed", 2_038_000, 10_000, 4_096_000, true, true},
		{"one more, half closed", 2_038_001, 10_000, 4_096_000, true, false},
		{"a small order is never refused", 1 << 40, smallOrder, 4_096_000, true, true},
		{"nor is one that nobody waits beside", 0, 1_000_000, 25_600, true, true},
		{"no ceiling", 1 << 40, 10_000, 0, true, true},
	} {
		if got := admits(row.backlog, row.n, row.ceiling, row.halfClosed); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

func TestRankOf(t *testing.T) {
	for _, row := range []struct {
		lacks      int
		halfClosed bool
		want       rank
	}{
		{0, false, rankOther}, {0, true, rankOther}, {1, true, rankTiny}, {tinyOrder, false, rankTiny},
		{tinyOrder + 1, false, rankSmall},
		{smallOrder, true, rankSmall}, {smallOrder + 1, false, rankLarge}, {smallOrder + 1, true, rankLeaving},
	} {
		if got := rankOf(row.lacks, row.halfClosed); got != row.want {
			t.Errorf("%d, half closed %v: %d, want %d", row.lacks, row.halfClosed, got, row.want)
		}
	}
}

// member is a waiter.
type member int

func (member) wake() {}

// owners returns those who wait, in order.
func (l *queue) owners() (all []int) {
	for p := l.first; p != nil; p = p.next {
		all = append(all, int(p.owner.(member)))
	}
	return all
}

// lacking has a number of IDs for each rank of a client that sends on, and for leaving one of a client that does not.
var lacking = [numRanks]int{rankOther: 0, rankTiny: 1, rankSmall: 100, rankLarge: 5000, rankLeaving: 5000}

// wait lets p wait in the queue of a rank.
func (t *turns) wait(p *place, r rank) { t.join(p, lacking[r], r == rankLeaving) }

// waiters are the queues of turns as slices.
type waiters [numRanks][]int

// remove removes a waiter, and returns its queue, or -1.
func (w *waiters) remove(who int) (from int) {
	for r := range w {
		if i := slices.Index(w[r], who); i >= 0 {
			w[r] = slices.Delete(w[r], i, i+1)
			return r
		}
	}
	return -1
}

// The linked lists do what slices would do when places join, quit, move and are
// served.
func TestTurnsKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const members = 8
		var q turns
		places := make([]*place, members)
		for i := range places {
			places[i] = &place{owner: member(i)}
		}
		var model waiters
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			who := rapid.IntRange(0, members-1).Draw(t, "who")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				r := rank(rapid.IntRange(0, numRanks-1).Draw(t, "rank"))
				if from := model.remove(who); from >= 0 {
					r = rank(from) // it waits already, and keeps its place
					model[r] = append(model[r], who)
					q.quit(places[who])
				}
				if model[r] == nil || !slices.Contains(model[r], who) {
					model[r] = append(model[r], who)
				}
				q.wait(places[who], r)
				q.wait(places[who], rankTiny)
			case 1:
				q.quit(places[who])
				model.remove(who)
			case 2:
				if q.moveToLeaving(places[who]); slices.Contains(model[rankLarge], who) {
					model.remove(who)
					model[rankLeaving] = append(model[rankLeaving], who)
				}
			case 3:
				p := q.next(numRanks)
				if p == nil {
					if slices.Concat(model[:]...) != nil {
						t.Fatalf("nobody is next of %v", model)
					}
					continue
				}
				first := func(queue []int) bool { return len(queue) > 0 && queue[0] == int(p.owner.(member)) }
				if !slices.ContainsFunc(model[:], first) {
					t.Fatalf("%d is next of %v", p.owner, model)
				}
				model.remove(int(p.owner.(member)))
				q.done(p, 0, false)
			}
			for r := range model {
				if got := q.queues[r].owners(); !slices.Equal(got, model[r]) || q.queues[r].length != len(model[r]) {
					t.Fatalf("queue %d is %v, want %v", r, got, model[r])
				}
			}
		}
	})
}

// No queue waits for more than a few turns of the other queues. The places of a queue
// get the same number of turns.
func TestEveryLineGetsTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q turns
		ranks := rapid.SliceOfN(rapid.IntRange(0, numRanks-1), 1, 12).Draw(t, "ranks")
		places := make([]*place, len(ranks))
		for i, r := range ranks {
			places[i] = &place{owner: member(i)}
			q.wait(places[i], rank(r))
		}
		had := make([]int, len(ranks))
		since := map[int]int{} // turns since a queue had one
		for range 500 {
			p := q.next(numRanks)
			who := int(p.owner.(member))
			had[who]++
			for _, r := range ranks {
				if since[r]++; since[r] > len(ranks)*(passedBy+numRanks) {
					t.Fatalf("queue %d has waited for %d turns", r, since[r])
				}
			}
			since[ranks[who]] = 0
			q.wait(p, rank(ranks[who]))
			q.done(p, 0, false)
		}
		for i, r := range ranks {
			for j, other := range ranks {
				if r == other && max(had[i], had[j])-min(had[i], had[j]) > 1 {
					t.Fatalf("%d turns and %d in one queue", had[i], had[j])
				}
			}
		}
	})
}

func TestScarcityEndsWithPlenty(t *testing.T) {
	var q turns
	for _, row := range []struct {
		took   int
		waited bool
		want   bool
	}{{maxSlice, false, false}, {1, true, true}, {plenty - 1, false, true}, {1, true, true}, {plenty - 1, false, true},
		{1, false, false}, {0, true, true}} {
		if q.note(row.took, row.waited); q.scarce != row.want {
			t.Errorf("%+v: scarce %v", row, q.scarce)
		}
	}
}

func TestScarcityEndsWhenNobodyWaits(t *testing.T) {
	var q turns
	q.note(0, true)
	var first, last place
	q.join(&first, 5000, false)
	q.join(&last, 5000, false)
	if q.done(q.next(numRanks), 1, false); !q.scarce {
		t.Error("it ended although one waits")
	}
	if q.next(numRanks); !q.scarce {
		t.Error("it ended with the last turn, before that is over")
	}
	if q.done(&last, 1, false); q.scarce {
		t.Error("it has not ended")
	}
}

// played is the result of one connection's order.
type played struct {
	got int
	// made is how many IDs had been made when this connection had all of its own. most
	// is the most IDs that any connection had then.
	made, most int
}

// play gives turns to connections that lack IDs, until last of them have all of theirs.
// The generator makes roundOfIDs in a tick.
func play(lacks []int, last int) []played {
	var q turns
	q.note(0, true)
	all := make([]played, len(lacks))
	for i, n := range lacks {
		q.join(&place{owner: member(i)}, n, false)
	}
	for made, most := 0, 0; last > 0; {
		p := q.next(numRanks)
		mine := &all[p.owner.(member)]
		lack := p.lacks
		k := min(lack, p.allowed, roundOfIDs-made%roundOfIDs) // a tick runs out
		made += k
		mine.got += k
		most = max(most, mine.got)
		if k < lack {
			q.join(p, lack-k, false)
			q.done(p, k, true)
			continue
		}
		q.done(p, k, true)
		mine.made, mine.most = made, most
		last--
	}
	return all
}

// Connections with large orders get the same number of IDs. Connections with small
// orders do not wait for them.
func TestIDsAreSharedByConnections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		greedy := rapid.IntRange(1, 200).Draw(t, "greedy")
		asked := rapid.SliceOfN(rapid.IntRange(1, 10_000), 1, 20).Draw(t, "others")
		all := play(append(slices.Repeat([]int{1 << 30}, greedy), asked...), len(asked))
		for i, n := range asked {
			p := all[greedy+i]
			switch {
			case n > smallOrder && p.most > n+4*maxSlice:
				t.Errorf("when one of %d had %d IDs, another had %d", greedy, n, p.most)
			case n <= smallOrder && p.made > (len(asked)+1)*smallOrder+maxSlice:
				t.Errorf("%d IDs beside %d greedy connections came after %d", n, greedy, p.made)
			}
		}
	})
}

// Goroutines have the turn one at a time, in the order of turns.
func TestGoroutinesHandOnTheTurnInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q turns
		q.note(0, true)
		type got struct {
			name string
			p    *place
		}
		order := make(chan got)
		wait := func(name string, lacks int) {
			go func() {
				var p place
				if err := q.acquire(t.Context(), &p, make(signal, 1), lacks, false); err != nil {
					t.Error(err)
				}
				order <- got{name, &p}
			}()
			synctest.Wait()
		}
		wait("the first", 5000)
		had := <-order
		if had.p.allowed != maxSlice || q.atOnce() != 0 {
			t.Errorf("%d IDs in the turn; while it lasts, %d at once", had.p.allowed, q.atOnce())
		}
		wait("a large order", 5000)
		wait("another", 5000)
		wait("a tiny one", 1)
		for _, want := range []string{"a tiny one", "a large order", "another"} {
			select {
			case got := <-order:
				t.Fatalf("%s does not wait", got.name)
			default:
			}
			q.release(had.p, 1)
			if had = <-order; had.name != want {
				t.Fatalf("%s is next, want %s", had.name, want)
			}
			synctest.Wait()
		}
		if q.release(had.p, 1); q.taken || q.atOnce() != maxSlice {
			t.Error("the turn is not free at the end")
		}
	})
}

// While IDs are plenty, no request waits for the goroutine that has the turn.
func TestTurnDelaysNobodyWhileIDsArePlenty(t *testing.T) {
	var q turns
	var p place
	take := func() {
		t.Helper()
		if err := q.acquire(t.Context(), &p, make(signal, 1), 5000, false); err != nil {
			t.Fatal(err)
		}
	}
	if take(); q.atOnce() != maxSlice {
		t.Error("a request waits")
	}
	if q.release(&p, 1); q.atOnce() != maxSlice {
		t.Error("a request waits for nobody")
	}
	if q.note(0, true); q.atOnce() != tinyOrder {
		t.Error("a large request takes no turn, while others wait for a tick")
	}
	take()
	if q.release(&p, 1); q.atOnce() != maxSlice {
		t.Error("IDs are scarce although nobody has waited since")
	}
}

// A goroutine that is cancelled just as it gets the turn hands the turn on. Signals for something else give no turn.
func TestCancelledWaiterHandsOnTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q turns
		var first, gone, last place
		woken := make(signal, 1)
		if err := q.acquire(t.Context(), &first, woken, 5000, false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		wait := func(ctx context.Context, p *place, woken signal) {
			go func() { done <- q.acquire(ctx, p, woken, 5000, false) }()
			synctest.Wait()
		}
		wait(ctx, &gone, make(signal, 1))
		wait(t.Context(), &last, woken)
		woken.wake()
		if synctest.Wait(); len(done) > 0 {
			t.Fatal("somebody has the turn of another")
		}
		q.mu.Lock()
		cancel()
		q.doneLocked(&first, 0, false)
		q.handOn()
		q.unlock()
		synctest.Wait()
		if len(done) != 2 {
			t.Fatalf("%d of 2 have come to an end", len(done))
		}
		if a, b := <-done, <-done; a == b || a != nil && b != nil {
			t.Errorf("%v and %v, want that one has the turn", a, b)
		}
		if gone.allowed != 0 || last.allowed == 0 || gone.in != nil {
			t.Errorf("the cancelled one may take %d IDs, the other %d", gone.allowed, last.allowed)
		}
	})
}

// Server.Reserve takes turns with the connections.
func TestReserveTakesTurns(t *testing.T) {
	b := &fakeBackend{maxRun: 4096}
	s := newTestServer(t, Config{Backend: b})
	if run, err := s.Reserve(t.Context(), 10_000); err != nil || run.Len != maxSlice || run.First != 1000 {
		t.Errorf("%+v, %v", run, err)
	}
	if run, err := s.Reserve(t.Context(), 5); err != nil || run.Len != 5 || s.turns.taken {
		t.Errorf("%+v, %v", run, err)
	}
	var p place
	if err := s.turns.acquire(t.Context(), &p, make(signal, 1), 5000, false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if run, err := s.Reserve(ctx, 10_000); replies.Of(err).Code != ids.BUSY {
		t.Errorf("%+v, %v, want BUSY: somebody else has the turn", run, err)
	}
	s.turns.release(&p, 1)
	b.reserve = func(context.Context, int) error { return replies.New(ids.FENCED, "lease lost") }
	if _, err := s.Reserve(t.Context(), 10_000); err == nil || s.turns.taken {
		t.Errorf("%v, taken %v", err, s.turns.taken)
	}
}
