package seq

import (
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
)

// A node reports what it has followed in its present session only. Before the session, ZooKeeper may have been restored
// from an older copy, and counts the changes from there.
func TestFollowedCountsForOneSession(t *testing.T) {
	s := newStage(t)
	a := s.newNode()
	if got := a.is.Followed(); got != (coordinator.Followed{Changes: 1, Compared: 1, Takes: true}) {
		t.Errorf("when there is nothing: %+v", got)
	}
	s.run(stageConfirm + time.Second)
	s.create("order", plain(), settings(1000))
	if got := a.is.Followed(); got != (coordinator.Followed{Changes: 1, Compared: 1, Takes: true}) {
		t.Errorf("before the change is read: %+v", got)
	}
	s.run(5 * time.Second)
	if got := a.is.Followed(); got != (coordinator.Followed{Changes: 2, Compared: 1, Takes: true}) {
		t.Errorf("after the change is read: %+v", got)
	}
	a.store.Expire()
	if got := a.is.Followed(); got != (coordinator.Followed{Changes: 1, Compared: coordinator.NotCompared,
		Takes: true}) {
		t.Errorf("in a new session: %+v", got)
	}
	s.run(5 * time.Second)
	a.noteLoss()
	s.run(5 * time.Second)
	if got := a.is.Followed(); got != (coordinator.Followed{Changes: 2, Compared: 2, Takes: true}) {
		t.Errorf("while others may put back what they know: %+v", got)
	}
	if ago := a.is.Report().ReadAgo; ago < 5*time.Second {
		t.Errorf("meanwhile it has known all changes %s ago", ago)
	}
	if _, ok := a.is.witness(); ok {
		t.Error("meanwhile its next process would read nothing again")
	}
	s.run(stageConfirm)
	if got := a.is.Followed(); got != (coordinator.Followed{Changes: 2, Incarnation: 1, Compared: 2, Takes: true}) {
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
