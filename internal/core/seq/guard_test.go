package seq

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// followingNode is a node whose slot says how far it has followed.
type followingNode struct {
	*memzk.Session
	t    *testing.T
	slot coordinator.Slot
}

// followingNode connects a node that holds worker 0.
func (s *stage) followingNode() *followingNode {
	ctx, f := context.Background(), &followingNode{s.Mem.Session(), s.t,
		coordinator.Slot{Node: "n", Nonce: "x", Term: 1, LeaseUntil: 1}}
	cl := simCluster(1)
	err := f.EnsureRoot(ctx, coordinator.SlotPath(0), "/live")
	if err == nil {
		_, err = f.Set(ctx, record.ClusterPath, store.Marshal(cl), store.AnyVersion)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	f.show()
	f.follow(0, 0)
	return f
}

// newFollowed returns a stage with the sequence order, and a node that has followed its creation. Its lease runs for an
// hour.
func newFollowed(t *testing.T) (*stage, *followingNode) {
	s := newStage(t)
	s.node()
	s.create("order", plain(), settings(1000))
	f := s.followingNode()
	f.slot.LeaseUntil = simEpoch + time.Hour.Milliseconds()
	f.follow(1, 0)
	return s, f
}

// show creates the live lock.
func (f *followingNode) show() {
	if _, err := f.Create(context.Background(), fmt.Sprintf("/live/%04d", 0), nil, store.Ephemeral); err != nil {
		f.t.Fatal(err)
	}
}

// follow writes that the node has followed so many changes.
func (f *followingNode) follow(changes, incarnation int64) {
	f.slot.Followed = coordinator.Followed{Last: &coordinator.Change{Number: changes, Incarnation: incarnation}}
	if _, err := f.Set(context.Background(), coordinator.SlotPath(0), store.Marshal(f.slot),
		store.AnyVersion); err != nil {
		f.t.Error(err)
	}
}

// ZooKeeper could lose two jumps of a name at once, so nodes must know the
// first one before the second one is made.
func TestJumpsWaitForConnectedNodes(t *testing.T) {
	s := newStage(t)
	s.node()
	f := s.followingNode()
	o, ctx, said, asleep := s.operator(), context.Background(), 0, func() {}
	o.Clock, o.OnWait = simClock{&s.now, func() { asleep() }}, func() { said++ }
	create := func(name string) error {
		_, err := o.Create(ctx, operator.Definition{Name: name, Map: plain(), Settings: settings(1000)})
		return err
	}
	set := func(c operator.Change) error {
		_, err := o.Set(ctx, "order", c)
		return err
	}
	const waits, passes = true, false
	for k, step := range []struct {
		do    func() error
		waits bool
	}{
		// it was never changed before
		{func() error { return create("order") }, passes},
		{func() error { return set(operator.Change{Settings: func(s *record.Settings) { s.Ceiling = 5 }}) }, passes}, // no jump
		{func() error { return create("ticket") }, passes},
		{func() error { return set(operator.Change{Next: new(int64(50))}) }, waits},
		{func() error { return set(operator.Change{NextPosition: new(int64(90))}) }, waits},
		{func() error { _, err := o.Delete(ctx, "order"); return err }, waits},
		{func() error { return create("order") }, waits},
	} {
		before, began := s.view("order").State.Changes, s.now
		last := s.view("order").State.LastChange("order")
		if step.waits {
			f.follow(last-1, 0)
			said, asleep = 0, func() {}
			var late *operator.NotFollowedError
			if err := step.do(); !errors.As(err, &late) || len(late.Behind) != 1 || said != 1 ||
				s.now-began < operator.GuardTime.Milliseconds() {
				t.Errorf("step %d: %v after %d ms, said %d times", k, err, s.now-began, said)
			}
			if after := s.view("order").State.Changes; after != before {
				t.Errorf("step %d: %d changes became %d", k, before, after)
			}
			began = s.now
			asleep = func() { f.follow(s.view("order").State.Changes, 0) } // within 30 s
		}
		if err := step.do(); err != nil || s.now-began > 1000 || s.now != began != step.waits {
			t.Errorf("step %d: %v after %d ms", k, err, s.now-began)
		}
	}
}

// What a node has followed in an earlier incarnation says nothing. A node that is cut off does not count, and ZooKeeper
// may fail meanwhile.
func TestJumpsWaitInThePresentIncarnation(t *testing.T) {
	s := newStage(t)
	s.node()
	f := s.followingNode()
	s.create("order", plain(), settings(1000))
	f.follow(100, 0)
	s.raise(0)
	var late *operator.NotFollowedError
	jump := operator.Change{Next: new(int64(5000))}
	if _, err := s.operator().Set(t.Context(), "order", jump); !errors.As(err, &late) {
		t.Error(err)
	}
	admin := s.Mem.Session()
	o := operator.Commands{Store: admin, Clock: simClock{&s.now, func() { admin.SetFault(nil) }}}
	admin.SetFault(func(c memzk.Call) memzk.Fault {
		if c.Path == "/live" {
			return memzk.FailBefore
		}
		return memzk.NoFault
	})
	f.Expire()
	if _, err := o.Set(t.Context(), "order", jump); err != nil {
		t.Error(err)
	}
}

// A far jump is made only while each node with a running lease is connected: one that does not know it may be the only
// one left after a loss of data.
func TestFarJumpsNeedAllNodes(t *testing.T) {
	s := newStage(t)
	s.node()
	f := s.followingNode()
	f.Expire()
	o := s.operator()
	create := func(name string, m record.Mode) error {
		d := operator.Definition{Name: name, Map: plain(), Settings: settings(1000), Mode: m}
		if positions.IsPattern(name) {
			d.MaxNames = 5
		}
		_, err := o.Create(t.Context(), d)
		return err
	}
	set := func(name string, c operator.Change) error {
		_, err := o.Set(t.Context(), name, c)
		return err
	}
	const needs, passes = true, false
	for k, step := range []struct {
		do    func() error
		needs bool
	}{
		{func() error { return create("order", record.Segment) }, passes}, // without a record, it needs a start after a loss
		{func() error {
			return set("order", operator.Change{Settings: func(s *record.Settings) { s.Ceiling = 5 }})
		}, passes},
		{func() error { return set("order", operator.Change{Next: new(int64(1))}) }, passes},
		{func() error { return set("order", operator.Change{Next: new(int64(50))}) }, needs},
		{func() error { _, err := o.Delete(t.Context(), "order"); return err }, passes},
		{func() error { return create("order", record.Segment) }, needs},
		{func() error { return create("ticks:*", record.Segment) }, passes},
		{func() error { return set("ticks:*", operator.Change{Next: new(int64(50))}) }, passes}, // frozen after a loss
		{func() error { return create("invoice", record.Strict) }, passes},
		{func() error { return set("invoice", operator.Change{Next: new(int64(50))}) }, passes}, // so is this
	} {
		f.slot.LeaseUntil = simEpoch + s.now + time.Hour.Milliseconds()
		f.follow(100, 0)
		before := s.view("order").State.Changes
		err := step.do()
		late, is := errors.AsType[*operator.NotFollowedError](err)
		refused := is && !late.Made && len(late.Absent) == 1 && s.view("order").State.Changes == before
		if refused != step.needs || !refused && err != nil {
			t.Errorf("step %d: %v", k, err)
		}
		if step.needs {
			o.IgnoredWorkers = []int{0}
			err := step.do()
			if o.IgnoredWorkers = nil; err != nil {
				t.Errorf("step %d without the node: %v", k, err)
			}
		}
	}
	f.slot.LeaseUntil = simEpoch + s.now - time.Hour.Milliseconds()
	f.follow(0, 0)
	if err := set("order", operator.Change{Next: new(int64(500))}); err != nil {
		t.Errorf("after the lease: %v", err)
	}
}

// When a far jump was made, the command ends when all nodes have followed, also those that have gone meanwhile.
func TestFarJumpsAreHeard(t *testing.T) {
	for name, row := range map[string]struct {
		asleep func(*followingNode) // while the command waits
		heard  bool
	}{
		"follows":          {func(f *followingNode) { f.follow(2, 0) }, true},
		"does not follow":  {func(*followingNode) {}, false},
		"goes":             {func(f *followingNode) { f.Expire() }, false},
		"follows and goes": {func(f *followingNode) { f.follow(2, 0); f.Expire() }, true},
	} {
		s, f := newFollowed(t)
		o := s.operator()
		o.Clock = simClock{&s.now, func() { row.asleep(f) }}
		r, err := o.Set(t.Context(), "order", operator.Change{Next: new(int64(5000))})
		late, is := errors.AsType[*operator.NotFollowedError](err)
		if heard := err == nil; heard != row.heard || !heard && (!is || !late.Made) || r.Next != 4999 {
			t.Errorf("%s: %v, next position %d", name, err, r.Next)
		}
	}
}

// A node whose live lock is missing for a moment may only reconnect. So a jump waits whether it has followed, and a far
// jump also whether it comes back.
func TestFarJumpsWaitForNodesThatReconnect(t *testing.T) {
	for name, row := range map[string]struct {
		asleep func(*followingNode) // while the command waits
		passes bool
	}{
		"comes back":              {func(f *followingNode) { f.show() }, true},
		"stops":                   {func(f *followingNode) { f.slot.Stopped = true; f.slot.LeaseUntil = 1; f.follow(1, 0) }, true},
		"does not come back soon": {func(*followingNode) {}, false},
	} {
		s, f := newFollowed(t)
		f.slot.HeartbeatMs = 3000
		f.follow(1, 0)
		f.Expire()
		slept := 0
		o := s.operator()
		o.Clock = simClock{&s.now, func() {
			if slept++; slept == 5 {
				row.asleep(f)
			}
			if s.view("order").State.Changes == 2 {
				f.follow(2, 0)
			}
		}}
		_, err := o.Set(t.Context(), "order", operator.Change{Next: new(int64(5000))})
		late, is := errors.AsType[*operator.NotFollowedError](err)
		if row.passes && err != nil || !row.passes && (!is || late.Made || len(late.Absent) != 1) || slept < 5 {
			t.Errorf("%s: %v after %d sleeps", name, err, slept)
		}
	}
}

// The clock of an operator does not decide alone whether a lease is over.
func TestFarJumpByAWrongClock(t *testing.T) {
	s, f := newFollowed(t)
	f.Expire()
	s.run(time.Second)
	ahead := s.now + 24*time.Hour.Milliseconds()
	o := s.operator()
	o.Clock = simClock{&ahead, func() {}}
	_, err := o.Set(t.Context(), "order", operator.Change{Next: new(int64(5000))})
	if late, is := errors.AsType[*operator.NotFollowedError](err); !is || late.Made || len(late.Absent) != 1 {
		t.Error(err)
	}
}

// A name that was purged begins anew. A node that knows only its earlier life goes on with that one after a loss of
// data.
func TestPurgeNeedsAllNodes(t *testing.T) {
	s := newStage(t)
	s.node()
	s.create("order", plain(), settings(1000))
	o, f := s.operator(), s.followingNode()
	f.slot.LeaseUntil = simEpoch + time.Hour.Milliseconds()
	f.follow(100, 0)
	s.remove("order")
	for _, do := range []func() error{
		func() error { return o.Purge(t.Context(), "order") },
		func() error {
			_, err := o.Create(t.Context(), operator.Definition{Name: "order", Map: plain(), Settings: settings(1000)})
			return err
		},
	} {
		f.Expire()
		s.run(time.Second)
		err := do()
		if late, is := errors.AsType[*operator.NotFollowedError](err); !is || late.Made || len(late.Absent) != 1 {
			t.Error(err)
		}
		if f.show(); do() != nil {
			t.Error("refused while the node is connected")
		}
	}
}

// A command that ends while it waits says that it has made the change.
func TestFarJumpThatIsInterrupted(t *testing.T) {
	s := newStage(t)
	s.node()
	s.create("order", plain(), settings(1000))
	f := s.followingNode()
	f.follow(1, 0)
	ctx, cancel := context.WithCancel(t.Context())
	o := s.operator()
	o.Clock = simClock{&s.now, cancel}
	_, err := o.Set(ctx, "order", operator.Change{Next: new(int64(5000))})
	if !errors.Is(err, operator.ErrMade) || s.view("order").Record.Next != 4999 {
		t.Error(err)
	}
	n, st, err := o.Find(t.Context(), "order")
	if err != nil {
		t.Fatal(err)
	}
	o.Clock = simClock{&s.now, func() {}}
	var late *operator.NotFollowedError
	if err := o.AwaitFollowed(t.Context(), n, st); !errors.As(err, &late) || !late.Made || len(late.Behind) != 1 {
		t.Error(err)
	}
	f.follow(2, 0)
	if err := o.AwaitFollowed(t.Context(), n, st); err != nil {
		t.Error(err)
	}
}
