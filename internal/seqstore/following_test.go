package seqstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/zkstore"
)

// A node reports what it has followed in its present session only. Before the session, ZooKeeper may have been restored
// from an older copy, and counts the changes from there.
func TestFollowedCountsForOneSession(t *testing.T) {
	s := newStage(t)
	a := s.newNode()
	if got := a.is.Followed(); got != (Followed{Changes: 1}) {
		t.Errorf("before it has read anything: %+v", got)
	}
	s.run(stageConfirm + time.Second)
	s.create("order", plain(), settings(1000))
	if got := a.is.Followed(); got != (Followed{1, 0}) {
		t.Errorf("before the change is read: %+v", got)
	}
	s.run(5 * time.Second)
	if got := a.is.Followed(); got != (Followed{2, 0}) {
		t.Errorf("after the change is read: %+v", got)
	}
	a.store.Expire()
	if got := a.is.Followed(); got != (Followed{Changes: 1}) {
		t.Errorf("in a new session: %+v", got)
	}
	s.run(5 * time.Second)
	a.noteLoss()
	s.run(5 * time.Second)
	if got := a.is.Followed(); got != (Followed{2, 1}) {
		t.Errorf("in a new incarnation: %+v", got)
	}
}

func TestLastChange(t *testing.T) {
	var st State
	if n := st.lastChange("a"); n != 0 {
		t.Error(n)
	}
	for _, name := range []string{"a", "b", "a", "c"} {
		st = st.after(name)
	}
	for name, want := range map[string]int64{"a": 3, "b": 2, "c": 4, "never": 0} {
		if n := st.lastChange(name); n != want {
			t.Errorf("%s: %d, want %d", name, n, want)
		}
	}
	for k := range maxChanged {
		st = st.after(fmt.Sprint("x", k))
	}
	if n := st.lastChange("a"); n != 4 { // it may be any of the first 4
		t.Error(n)
	}
}

func TestGuardIsAskedBeforeJumps(t *testing.T) {
	s := newStage(t)
	s.node()
	ctx := context.Background()
	var asked []Followed
	var refuses error
	o := s.operator()
	o.Guard = func(_ context.Context, _ zkstore.Store, after Followed) error {
		asked = append(asked, after)
		return refuses
	}
	d := Definition{Name: "order", Map: plain(), Settings: settings(1000)}
	unguarded := s.operator()
	unguarded.Guard = nil
	if _, err := unguarded.Create(ctx, d); err == nil {
		t.Error("an operator without a guard creates a sequence")
	}
	ceiling, next := Change{Settings: func(s *Settings) { s.Ceiling = 5 }}, Change{Next: new(int64(50))}
	steps := []struct {
		do   func() error
		want *Followed // nil: not asked
	}{
		{func() error { _, err := o.Create(ctx, d); return err }, &Followed{}},
		{func() error { _, err := o.Set(ctx, "order", ceiling); return err }, nil},
		{func() error { _, err := o.Set(ctx, "order", next); return err }, &Followed{3, 0}},
		{func() error { _, err := o.Delete(ctx, "order"); return err }, &Followed{4, 0}},
		{func() error { _, err := o.Create(ctx, d); return err }, &Followed{5, 0}},
	}
	for k, step := range steps {
		asked, refuses = nil, errors.New("not now")
		before := *s.view("order").state
		if err := step.do(); step.want != nil && !errors.Is(err, refuses) {
			t.Errorf("step %d: %v", k, err)
		}
		if step.want != nil && (len(asked) != 1 || asked[0] != *step.want || s.view("order").state.Changes != before.Changes) {
			t.Errorf("step %d: asked %+v", k, asked)
		}
		if refuses = nil; step.want != nil {
			if err := step.do(); err != nil {
				t.Fatalf("step %d: %v", k, err)
			}
		} else if len(asked) != 0 {
			t.Errorf("step %d: asked %+v", k, asked)
		}
	}
}
