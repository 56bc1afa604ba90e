package seq

import (
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
)

// told returns what a node says at its heartbeats, in words.
func told(f coordinator.Followed) string {
	records := "knows none"
	switch {
	case f.Compares:
		records = "compares"
	case f.Compared != nil:
		records = fmt.Sprint("compared in ", *f.Compared)
	}
	if f.Takes {
		records += ", takes"
	}
	return fmt.Sprintf("change %d of incarnation %d, %s", f.Last.Number, f.Last.Incarnation, records)
}

// A node reports what it has followed in its present session only. Before the session, ZooKeeper may have been restored
// from an older copy, and counts the changes from there.
func TestFollowedCountsForOneSession(t *testing.T) {
	s := newStage(t)
	a := s.newNode()
	if got := told(a.is.issuer.Followed()); got != "change 0 of incarnation 0, compared in 0, takes" {
		t.Errorf("when there is nothing: %s", got)
	}
	s.run(stageConfirm + time.Second)
	s.create("order", plain(), settings(1000))
	if got := told(a.is.issuer.Followed()); got != "change 0 of incarnation 0, compared in 0, takes" {
		t.Errorf("before the change is read: %s", got)
	}
	s.run(5 * time.Second)
	if got := told(a.is.issuer.Followed()); got != "change 1 of incarnation 0, compared in 0, takes" {
		t.Errorf("after the change is read: %s", got)
	}
	a.store.Expire()
	if got := told(a.is.issuer.Followed()); got != "change 0 of incarnation 0, compares, takes" {
		t.Errorf("in a new session: %s", got)
	}
	s.run(5 * time.Second)
	a.noteLoss()
	s.run(5 * time.Second)
	if got := told(a.is.issuer.Followed()); got != "change 1 of incarnation 0, compared in 1, takes" {
		t.Errorf("while others may put back what they know: %s", got)
	}
	if ago := a.is.issuer.Report().ReadAgo; ago < 5*time.Second {
		t.Errorf("meanwhile it has known all changes %s ago", ago)
	}
	if _, ok := a.is.witness(); ok {
		t.Error("meanwhile its next process would read nothing again")
	}
	s.run(stageConfirm)
	if got := told(a.is.issuer.Followed()); got != "change 1 of incarnation 1, compared in 1, takes" {
		t.Errorf("in a new incarnation: %s", got)
	}
}
