package worker

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever the clock does, no ID is made twice, the IDs with one rollback value only grow,
// and all IDs obey the issue rule. Ready says what Try says.
func TestIDsAreUniqueAndObeyTheIssueRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLayout(t)
		l.SequenceBits, l.SegmentBits = min(l.SequenceBits, 6), min(l.SegmentBits, 2)
		c := &manualClock{}
		c.ns.Store(max(l.Epoch, 1) * 1e6)
		floor := Tick(rapid.Int64Range(0, min(50, int64(l.MaxTick()))).Draw(t, "floor"))
		segmentStarts := []SegmentStart{SegmentZero, SegmentRandom}
		borrow := Tick(rapid.Int64Range(0, 20).Draw(t, "borrow") / 10 * rapid.Int64Range(0, 30).Draw(t, "ticks"))
		g, err := NewGenerator(GeneratorConfig{
			Layout: l, Worker: int64(l.Workers() - 1), Clock: c, OnRollback: leafRule{}, Floor: floor, Sleep: c.sleep,
			SequenceStart:  rapid.SampledFrom([]SequenceStart{StartRandom, StartZero, StartCarryOn}).Draw(t, "start"),
			SegmentStart:   rapid.SampledFrom(segmentStarts[:1+min(1, l.SegmentBits)]).Draw(t, "segment start"),
			Borrow:         time.Duration(borrow) * l.Unit,
			CountRollbacks: l.RollbackBits > 0,
		})
		if err != nil {
			t.Fatal(err)
		}
		limit, highest := floor, floor-1
		last := map[int64]ID{}
		made := map[ID]bool{}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "do") {
			case 0:
				c.step(time.Duration(rapid.Int64Range(-20, 200).Draw(t, "step")) * l.Unit / 10)
			case 1:
				to := floor + Tick(rapid.Int64Range(-5, 100).Draw(t, "limit"))
				g.Extend(to)
				if limit = max(limit, min(to, l.MaxTick()+1)); g.Limit() != limit {
					t.Fatalf("limit %d, want %d", g.Limit(), limit)
				}
			default:
				now := l.tickAt(c.Now())
				waited := time.Duration(rapid.IntRange(0, 1).Draw(t, "waited"))
				ready := g.Ready()
				run, _, err := g.Try(rapid.IntRange(1, 100).Draw(t, "n"), waited)
				switch {
				case waited == 0 && fmt.Sprint(ready) != fmt.Sprint(err), // BehindErrors are not comparable
					(now > l.MaxTick()) != (err == ErrTimeExhausted),
					now >= limit && now <= l.MaxTick() && err != ErrLimit:
					t.Fatalf("tick %d of [%d, %d): %v, and Ready says %v", now, floor, limit, err, ready)
				}
				for i := range run.Len {
					id := run.At(i)
					f, err := l.Decode(id)
					if err != nil {
						t.Fatal(err)
					}
					if f.Tick < floor || f.Tick >= limit || f.Tick < now || f.Tick > now+borrow {
						t.Fatalf("tick %d outside [%d, %d) at %d, borrowing %d", f.Tick, floor, limit, now, borrow)
					}
					if before, ok := last[f.Rollback]; made[id] || ok && id <= before {
						t.Fatalf("%d, %+v after %d", id, f, before)
					}
					if f.Worker != int64(l.Workers()-1) || f.Datacenter != 0 {
						t.Fatalf("%+v: another's", f)
					}
					last[f.Rollback], made[id], highest = id, true, max(highest, f.Tick)
				}
			}
		}
		if end := g.Close(); end != highest+1 { // the floor, if there is no ID
			t.Fatalf("end %d after %d", end, highest)
		}
	})
}
