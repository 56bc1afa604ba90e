package seq

import (
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// The tests in this file lose data when no node that is left knows all that the lost data had.

// issue asks for n values at each second of d, and fails the test if one is in seen. It adds them.
func (a *actor) issue(name string, n int, d time.Duration, seen map[int64]string, who string) {
	a.t.Helper()
	for end := a.now + d.Milliseconds(); a.now < end; a.run(time.Second) {
		c := a.ask(name, n, false).finish()
		if c.err != nil {
			continue
		}
		for _, r := range c.runs {
			for k := range int64(r.Len) {
				v := int64(r.First) + k*int64(r.Step)
				if was := seen[v]; was != "" {
					a.t.Fatalf("%s issues %d, as before %s", who, v, was)
				}
				seen[v] = who
			}
		}
	}
}

// served fails the test unless the values were issued by someone.
func served(t *testing.T, seen map[int64]string, who string) {
	t.Helper()
	for _, by := range seen {
		if by == who {
			return
		}
	}
	t.Errorf("%s has issued nothing", who)
}

// An operator has raised the next value. Since then there were more changes of other names than /seq lists, and all
// nodes were replaced by new ones.
func TestNewNodesLearnOfOldChanges(t *testing.T) {
	s := newStage(t)
	a, seen := s.node(), make(map[int64]string)
	s.create("order", plain(), settings(10))
	s.create("other", plain(), settings(10))
	a.issue("order", 1, 6*time.Second, seen, "a")
	copied := s.Mem.Snapshot()
	s.setNext("order", 50_000)
	s.run(4 * time.Second)
	a.issue("order", 1, 20*time.Second, seen, "a after the change")
	for range record.MaxChanged {
		s.set("other", operator.Change{Settings: func(set *record.Settings) { set.SupplyMs++ }})
		s.run(time.Second)
	}
	b := s.node()
	s.run(time.Minute)
	_ = a.is.giveBack(t.Context())
	a.gone()
	s.run(20 * time.Minute)
	s.lose(copied, 9)
	b.noteLoss()
	s.run(stageConfirm + 2*time.Second)
	b.issue("order", 100, 2*time.Hour, seen, "b")
	served(t, seen, "b")
}

// ofMany loses data. Node a knows 100 records, and the last one that it puts back is zorder, whose next value was
// raised. Node b knows nothing of that. seen are the values that were issued.
func ofMany(t *testing.T) (s *stage, a, b *actor, seen map[int64]string) {
	t.Helper()
	s = newStage(t)
	a, seen = s.node(), make(map[int64]string)
	s.create("zorder", plain(), settings(10))
	s.run(4 * time.Second)
	a.issue("zorder", 1, time.Second, seen, "a")
	copied := s.Mem.Snapshot()
	s.setNext("zorder", 1500)
	s.run(4 * time.Second)
	for k := range 100 {
		s.create(fmt.Sprintf("n%03d", k), plain(), settings(10))
		a.issue("zorder", 10, time.Second, seen, "a after the change")
	}
	s.run(4 * time.Second)
	w, _ := a.is.witness()
	a.restartWith(w)
	b = s.node()
	s.lose(copied, 9)
	b.is.follower.losses.Known().Changes, b.is.issuer.series.byName = w.State.Changes-100, nil // it knows nothing of the change
	b.is.issuer.series.all = nil
	b.is.issuer.series.last.Store(nil)
	return s, a, b, seen
}

// A node that knows many sequences puts them back for longer than the confirming time.
func TestPutBackTakesLongerThanTheConfirmingTime(t *testing.T) {
	s, a, b, seen := ofMany(t)
	a.noteLoss()
	a.calls = func(c memzk.Call) memzk.Fault {
		if c.Op == "multi" {
			s.now += 300 // stands for thousands of sequences
		}
		return memzk.NoFault
	}
	b.issue("zorder", 1, 2*time.Minute, seen, "b")
	served(t, seen, "b")
}

// Nobody who is left knows how old the data are that were put back.
func TestNobodyKnowsTheSequenceTime(t *testing.T) {
	for name, left := range map[string]func(s *stage, a *actor) *actor{
		"the finder has lost its witness": func(_ *stage, a *actor) *actor {
			a.restart()
			a.noteLoss()
			return a
		},
		"the finder ends at once, and a new node comes": func(s *stage, a *actor) *actor {
			a.noteLoss()
			a.gone()
			s.run(5 * time.Minute)
			return s.node()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			a, seen := s.node(), make(map[int64]string)
			s.create("order", plain(), settings(100))
			a.issue("order", 1, 2*time.Second, seen, "a")
			copied := s.Mem.Snapshot()
			a.issue("order", 100, 2*time.Minute, seen, "a")
			s.lose(copied, 9)
			b := left(s, a)
			s.run(stageConfirm + 2*time.Second)
			b.issue("order", 100, 2*time.Minute, seen, "b")
			served(t, seen, "b")
		})
	}
}

// A node that was away for more than 64 changes comes back after a loss.
func TestReturningNodeLearnsOfChanges(t *testing.T) {
	s := newStage(t)
	a, seen := s.node(), make(map[int64]string)
	b := s.node()
	s.create("other", plain(), settings(10))
	s.run(4 * time.Second)
	w, ok := b.is.witness()
	if !ok {
		t.Fatal("no witness")
	}
	b.gone()
	s.create("order", plain(), settings(10))
	a.issue("order", 1, 6*time.Second, seen, "a")
	copied := s.Mem.Snapshot()
	s.setNext("order", 50_000)
	s.run(4 * time.Second)
	a.issue("order", 1, 20*time.Second, seen, "a after the change")
	for range record.MaxChanged {
		s.set("other", operator.Change{Settings: func(set *record.Settings) { set.SupplyMs++ }})
		s.run(time.Second)
	}
	last := s.Mem.Snapshot()
	s.run(time.Second)
	s.lose(last, 9)
	a.noteLoss()
	s.run(stageConfirm + 5*time.Second)
	b.restartWith(w)
	s.nodes = append(s.nodes, b)
	s.run(time.Minute)
	_ = a.is.giveBack(t.Context())
	a.gone()
	s.run(20 * time.Minute)
	s.lose(copied, 11)
	b.noteLoss()
	s.run(stageConfirm + 2*time.Second)
	b.issue("order", 100, 2*time.Hour, seen, "b")
	served(t, seen, "b")
}

// slowPutBack lets a put its records back slowly, while b has rounds.
func slowPutBack(t *testing.T, confirm, follow time.Duration, failEvery int, late time.Duration) {
	s, a, b, seen := ofMany(t)
	a.cluster.ConfirmTime, b.cluster.ConfirmTime = confirm, confirm
	a.is.issuer.cfg.Follow, b.is.issuer.cfg.Follow = follow, follow
	a.noteLoss()
	multis := 0
	inHook := false
	began := s.now
	bTook := func() {
		_ = b.round()
		c := b.ask("zorder", 1, false)
		if !c.done {
			_ = b.round()
			c.again()
		}
		if c.done && c.err == nil {
			v := int64(c.runs[0].First)
			if was := seen[v]; was != "" {
				t.Fatalf("b issues %d at %d ms after the loss, as before %s", v, s.now-began, was)
			}
			seen[v] = "b"
		}
	}
	a.calls = func(c memzk.Call) memzk.Fault {
		if c.Op == "multi" && !inHook {
			multis++
			inHook = true
			s.now += 300
			bTook()
			inHook = false
			if failEvery > 0 && multis%failEvery == 0 {
				return memzk.FailBefore
			}
		}
		return memzk.NoFault
	}
	if late > 0 {
		for s.now < began+late.Milliseconds() {
			s.now += 500
			bTook()
		}
	}
	for range 400 {
		s.now += 100
		_ = a.round()
		bTook()
	}
	served(t, seen, "b")
}

// A node tells in time that it still puts records back: although it notices the loss late, although some of its writes
// fail, and in a cluster with a short confirming time.
func TestNodeTellsInTimeThatItPutsBack(t *testing.T) {
	for name, row := range map[string]struct {
		confirm, follow time.Duration
		failEvery       int
		late            time.Duration
	}{
		"at once":            {stageConfirm, 3 * time.Second, 0, 0},
		"noticed late":       {stageConfirm, 3 * time.Second, 0, 10 * time.Second},
		"writes that fail":   {stageConfirm, 3 * time.Second, 8, 0},
		"a short confirming": {time.Second, 250 * time.Millisecond, 0, 0},
	} {
		t.Run(name, func(t *testing.T) { slowPutBack(t, row.confirm, row.follow, row.failEvery, row.late) })
	}
}
