package positions

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Every position that was added is issued once or skipped, in ascending order, and none at or above the bound.
func TestStockIssuesInOrder(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var s Stock
		var next, issued, added int64 = 0, -1, 0
		for range 60 {
			before, free := s.Left(), s.Free()
			if parts := s.From(s.Bound()); total(parts) != before-free {
				t.Fatalf("seed %d: %d left, %d free, %v from %d on", seed, before, free, parts, s.Bound())
			}
			switch rng.IntN(6) {
			case 0, 1:
				next += rng.Int64N(3) * rng.Int64N(10)
				b := Block{next, next + rng.Int64N(20)}
				if ok := b.Len() > 0 && b.First >= added; s.Add(b) != ok {
					t.Fatalf("seed %d: %v added after %d", seed, b, added)
				} else if ok {
					added = b.End
				}
				next = b.End
			case 2:
				n := 1 + rng.Int64N(30)
				parts, ok := s.Take(n, nil)
				if ok != (n <= free) || !ok && s.Left() != before || ok && s.Left() != before-n {
					t.Fatalf("seed %d: took %d of %d: %v", seed, n, before, ok)
				}
				for _, p := range parts {
					if p.First <= issued || p.Len() < 1 || p.End > s.Bound() {
						t.Fatalf("seed %d: %v after %d", seed, p, issued)
					}
					issued = p.End - 1
				}
			case 3:
				n := 1 + rng.Int64N(30)
				end := s.AfterWhole(n)
				b, ok := s.TakeWhole(n)
				if ok != (end != 0 && end <= s.Bound()) || ok && (b.Len() != n || b.First <= issued || b.End != end) || !ok && s.Left() != before {
					t.Fatalf("seed %d: whole %v after %d", seed, b, issued)
				}
				if ok {
					issued = b.End - 1
				}
			case 4:
				if rng.IntN(4) == 0 {
					p := issued + rng.Int64N(40)
					s.SkipTo(p)
					issued, added = max(issued, p-1), max(added, p)
				}
			case 5:
				n := rng.Int64N(60)
				p := s.After(n)
				if s.SetBound(p); s.Free() != min(n, before) {
					t.Fatalf("seed %d: %d of %d are below %d, not %d", seed, s.Free(), before, p, n)
				}
			}
			if issued >= 0 && issued < added && s.Add(Block{issued, issued + 1}) {
				t.Fatalf("seed %d: position %d came back", seed, issued)
			}
		}
	}
}

func total(blocks []Block) (n int64) {
	for _, b := range blocks {
		n += b.Len()
	}
	return n
}

func TestStockGivesNothingAboveItsBound(t *testing.T) {
	var s Stock
	s.Add(Block{10, 20})
	s.Add(Block{30, 40})
	if _, ok := s.Take(1, nil); ok {
		t.Error("a stock without a bound gives positions")
	}
	s.SetBound(15)
	if _, ok := s.TakeWhole(6); ok || s.Free() != 5 {
		t.Error(s)
	}
	if b, ok := s.TakeWhole(5); !ok || b != (Block{10, 15}) || s.Left() != 15 {
		t.Error(b, ok, s)
	}
}

func TestStockMergesNeighbours(t *testing.T) {
	var s Stock
	s.SetBound(math.MaxInt64)
	s.Add(Block{0, 10})
	s.Add(Block{10, 20})
	if n := s.Longest(); n != 20 {
		t.Errorf("the longest part has %d", n)
	}
	if b, ok := s.TakeWhole(15); !ok || b != (Block{0, 15}) || s.Left() != 5 {
		t.Error(b, ok, s)
	}
	s.Add(Block{30, 40})
	if b, ok := s.TakeWhole(6); !ok || b != (Block{30, 36}) || s.Left() != 4 {
		t.Error(b, ok, s)
	}
	if _, ok := s.TakeWhole(5); ok || s.Longest() != 4 {
		t.Error(s)
	}
	if s.Drop(); s.Left() != 0 || s.Add(Block{39, 50}) || !s.Add(Block{40, 50}) {
		t.Error(s)
	}
}

// In any window of time, no more than the burst and the ceiling's positions of that window are taken.
func TestCeilingBoundsEveryWindow(t *testing.T) {
	type taking struct{ at, n int64 }
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		c := Ceiling(1 + rng.Int64N(5000))
		now := int64(1_800_000_000_000)
		b := Budget{c.Burst(), now}
		var all []taking
		for range 100 {
			now += rng.Int64N(2000)
			n := 1 + rng.Int64N(c.Burst()/2+1)
			after, wait := c.Spend(b, n, now)
			if wait > 0 {
				if n <= c.Burst() {
					if _, again := c.Spend(b, n, now+wait); again != 0 {
						t.Fatalf("seed %d: after the wait of %d ms there are %d ms left", seed, wait, again)
					}
				}
				continue
			}
			if after.Credit > c.Burst() || after.Credit < 0 {
				t.Fatal(seed, after)
			}
			b = after
			all = append(all, taking{now, n})
		}
		for i := range all {
			var sum int64
			for _, k := range all[i:] {
				if sum += k.n; sum > c.Burst()+c.over(k.at-all[i].at)+1 {
					t.Fatalf("seed %d: %d positions in %d ms at a ceiling of %d a second", seed, sum, k.at-all[i].at, c)
				}
			}
		}
	}
}

// A record is lost at any moment, and an older copy is put back, also twice. The skip covers all that
// was taken since the copy.
func TestSkipCoversALostRecord(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := Ceiling(8 + rng.Int64N(5000))
		behind := func() int64 { return rng.Int64N(15_000) } // how far a node lags behind the sequence time
		real, issued := int64(1_800_000_000_000), int64(0)
		b, next := Budget{c.Burst(), real}, int64(0)
		take := func(n int64) {
			if after, wait := c.Spend(b, n, real-behind()); wait == 0 {
				b, next = after, next+n
				issued = max(issued, next)
			}
		}
		type record struct {
			b    Budget
			next int64
		}
		copies := []record{{b, next}}
		for range 6 {
			if rng.IntN(2) == 0 {
				copies = append(copies, record{b, next})
			}
			for range rng.IntN(30) {
				real += rng.Int64N(3000)
				take(1 + rng.Int64N(c.Burst()/4+1))
			}
			real += 12_000 + rng.Int64N(30_000) // the confirming time, and what the nodes that put the time back add
			now, n := real, 1+rng.Int64N(c.Burst()/8)
			copied := copies[rng.IntN(len(copies))]
			skip, wait := c.Skip(copied.b, now)
			if wait > 0 {
				real += wait
				now += wait
				if skip, wait = c.Skip(copied.b, now); wait > 0 {
					t.Fatalf("seed %d: after the wait there are %d ms left", seed, wait)
				}
			}
			first := copied.next + skip
			if first < issued {
				t.Fatalf("seed %d: skipped to %d, issued were %d", seed, first, issued)
			}
			b, next = c.Pay(copied.b, n, now), first+n
			issued = next
		}
	}
}

// Twenty losses in a row bring back the record that the skip before has just written. Each time a block is taken that
// is not paid for yet. Then the oldest copy comes back.
func TestLossesInARowDoNotAddUp(t *testing.T) {
	const between = 12_000 // ms
	c := Ceiling(1000)
	skipFrom := func(b Budget, now int64) (skip, at int64) {
		skip, wait := c.Skip(b, now)
		if wait > 0 {
			skip, _ = c.Skip(b, now+wait)
		}
		return skip, now + wait
	}
	oldest := Budget{c.Burst(), 0}
	b, now, next := oldest, int64(0), int64(0)
	for range 20 {
		skip, at := skipFrom(b, now+between)
		block := c.Burst() / 8
		b, now, next = c.Pay(b, block, at), at, next+skip+block
	}
	// The sequence gives all that the record allows, until the last loss.
	now += between
	b = c.At(b, now)
	next += max(0, b.Credit)
	if skip, _ := skipFrom(oldest, now); skip < next {
		t.Errorf("skipped to %d, issued were %d", skip, next)
	}
}

func TestCeilingDoesNotOverflow(t *testing.T) {
	c := Ceiling(math.MaxInt64)
	if c.Burst() != math.MaxInt64 || c.over(math.MaxInt64) != math.MaxInt64 || maxSkip(c) != math.MaxInt64 {
		t.Error(c.Burst())
	}
	if b := c.At(c.Pay(Budget{}, math.MaxInt64, 0), math.MaxInt64); b.Credit > 0 {
		t.Error(b)
	}
	if _, wait := Ceiling(0).Spend(Budget{}, 1, 5); wait != math.MaxInt64 {
		t.Error(wait)
	}
}

func maxSkip(c Ceiling) int64 {
	skip, _ := c.Skip(Budget{math.MaxInt64, 0}, math.MaxInt64)
	return skip
}

func TestSize(t *testing.T) {
	usual := Demand{Rate: 1000, Supply: 15 * time.Minute, Smallest: 1024, Last: 1 << 19, Need: 1, Credit: 10_000_000,
		Left: math.MaxInt64}
	for name, c := range map[string]struct {
		change func(*Demand)
		size   int64
	}{
		"the rate for the time of supply":          {func(d *Demand) {}, 1 << 20},
		"at first the smallest":                    {func(d *Demand) { d.Last, d.Rate = 0, 0 }, 1024},
		"at first the smallest, at any rate":       {func(d *Demand) { d.Last = 0 }, 1024},
		"eight times the last one":                 {func(d *Demand) { d.Last = 1024 }, 8192},
		"smaller again":                            {func(d *Demand) { d.Rate = 10 }, 16384},
		"a quarter of the credit":                  {func(d *Demand) { d.Credit = 4000 }, 1024},
		"a quarter of a small credit":              {func(d *Demand) { d.Credit, d.Smallest = 4000, 32 }, 1000},
		"all of a very small credit":               {func(d *Demand) { d.Credit = 100 }, 100},
		"what is needed":                           {func(d *Demand) { d.Need = 5_000_000 }, 5_000_000},
		"what is needed, although it is forbidden": {func(d *Demand) { d.Need, d.Credit = 50, 10 }, 50},
		"a sixteenth of what is left":              {func(d *Demand) { d.Left = 160_000 }, 10_000},
		"less than the smallest at the end":        {func(d *Demand) { d.Left = 1000 }, 62},
		"one, when few are left":                   {func(d *Demand) { d.Left = 31 }, 1},
		"one, when none is left":                   {func(d *Demand) { d.Left = 0 }, 1},
		"what is needed, of few that are left":     {func(d *Demand) { d.Need, d.Left = 500, 1000 }, 500},
		"the rate, when a sixteenth is more":       {func(d *Demand) { d.Left = 1 << 24 }, 1 << 20},
		"at most MaxBlock": {func(d *Demand) {
			d.Rate, d.Last, d.Credit = 1e12, MaxBlock,
				math.MaxInt64
		}, MaxBlock},
	} {
		d := usual
		c.change(&d)
		if size := d.Size(); size != c.size {
			t.Errorf("%s: %d, not %d", name, size, c.size)
		}
	}
}

func TestBucketsAreUsedEvenly(t *testing.T) {
	count := make([]int, Buckets)
	for i := range 100 * Buckets {
		count[Bucket("order:"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String())]++
	}
	for i, n := range count {
		if n < 40 || n > 180 {
			t.Errorf("bucket %d has %d of %d names", i, n, 100*Buckets)
		}
	}
}
