package lineproto

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
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
		if got := slice(row.lacks, row.waiting, row.scarce); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestAtOnce(t *testing.T) {
	for _, row := range []struct {
		name    string
		waiting []rank
		taken   int
		scarce  bool
		want    int
	}{
		{"IDs are plenty", []rank{large, small}, 100_000, false, maxSlice},
		{"nobody waits", nil, roundOfIDs - 1, true, maxSlice},
		{"a round has been taken", nil, roundOfIDs, true, tinyOrder},
		{"somebody waits", []rank{large}, 0, true, tinyOrder},
		{"somebody with few IDs waits", []rank{large, tiny}, 0, true, 0},
	} {
		q := turns[int]{scarce: row.scarce}
		for _, r := range row.waiting {
			q.join(&place[int]{}, r)
		}
		if got := q.atOnce(row.taken); got != row.want {
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
		{0, false, other}, {0, true, other}, {1, true, tiny}, {tinyOrder, false, tiny}, {tinyOrder + 1, false, small},
		{smallOrder, true, small}, {smallOrder + 1, false, large}, {smallOrder + 1, true, leaving},
	} {
		if got := rankOf(row.lacks, row.halfClosed); got != row.want {
			t.Errorf("%d, half closed %v: %d, want %d", row.lacks, row.halfClosed, got, row.want)
		}
	}
}

// owners returns those who wait, in order.
func (l *line[W]) owners() (all []W) {
	for p := l.first; p != nil; p = p.next {
		all = append(all, p.owner)
	}
	return all
}

// waiters are the lines of a queue as slices.
type waiters [numRanks][]int

// remove removes a waiter, and returns its line, or -1.
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
		var q turns[int]
		places := make([]*place[int], members)
		for i := range places {
			places[i] = &place[int]{owner: i}
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
					places[who].quit()
				}
				if model[r] == nil || !slices.Contains(model[r], who) {
					model[r] = append(model[r], who)
				}
				q.join(places[who], r)
				q.join(places[who], tiny)
			case 1:
				places[who].quit()
				model.remove(who)
			case 2:
				if q.part(places[who]); slices.Contains(model[large], who) {
					model.remove(who)
					model[leaving] = append(model[leaving], who)
				}
			case 3:
				p, ok := q.next(numRanks)
				if !ok {
					if slices.Concat(model[:]...) != nil {
						t.Fatalf("nobody is next of %v", model)
					}
					continue
				}
				first := func(line []int) bool { return len(line) > 0 && line[0] == p.owner }
				if !slices.ContainsFunc(model[:], first) {
					t.Fatalf("%d is next of %v", p.owner, model)
				}
				model.remove(p.owner)
			}
			for r := range model {
				if got := q.lines[r].owners(); !slices.Equal(got, model[r]) || q.lines[r].length != len(model[r]) {
					t.Fatalf("line %d is %v, want %v", r, got, model[r])
				}
			}
		}
	})
}

// No line waits for more than a few turns of the other lines. The places of a line
// get the same number of turns.
func TestEveryLineGetsTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q turns[int]
		ranks := rapid.SliceOfN(rapid.IntRange(0, numRanks-1), 1, 12).Draw(t, "ranks")
		places := make([]*place[int], len(ranks))
		for i, r := range ranks {
			places[i] = &place[int]{owner: i}
			q.join(places[i], rank(r))
		}
		had := make([]int, len(ranks))
		since := map[int]int{} // turns since a line had one
		for range 500 {
			p, _ := q.next(numRanks)
			had[p.owner]++
			for _, r := range ranks {
				if since[r]++; since[r] > len(ranks)*(passedBy+numRanks) {
					t.Fatalf("line %d has waited for %d turns", r, since[r])
				}
			}
			since[ranks[p.owner]] = 0
			q.join(p, rank(ranks[p.owner]))
		}
		for i, r := range ranks {
			for j, other := range ranks {
				if r == other && max(had[i], had[j])-min(had[i], had[j]) > 1 {
					t.Fatalf("%d turns and %d in one line", had[i], had[j])
				}
			}
		}
	})
}

func TestScarcityEndsWithPlenty(t *testing.T) {
	var q turns[int]
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
	q := turns[int]{scarce: true}
	q.join(&place[int]{}, large)
	if q.next(numRanks); !q.scarce {
		t.Error("it ended with the last turn, before that is over")
	}
	if _, ok := q.next(numRanks); ok || q.scarce {
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
	q := turns[int]{scarce: true}
	all := make([]played, len(lacks))
	for i, n := range lacks {
		q.join(&place[int]{owner: i}, rankOf(n, false))
	}
	for made, most := 0, 0; last > 0; {
		waiting := q.waiting(numRanks)
		p, _ := q.next(numRanks)
		mine := &all[p.owner]
		lack := lacks[p.owner] - mine.got
		k := min(lack, slice(lack, waiting, true), roundOfIDs-made%roundOfIDs) // a tick runs out
		made += k
		mine.got += k
		most = max(most, mine.got)
		if k < lack {
			q.join(p, rankOf(lack-k, false))
			continue
		}
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
