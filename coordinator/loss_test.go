package coordinator

import (
	"errors"
	"testing"
	"time"
)

// What owners and newcomers do when ZooKeeper has lost data.

// wipe loses everything, as a standalone server that was set up anew.
func (l *lab) wipe() {
	l.mem.Wipe()
	l.forget()
}

// takeOver writes another's record into a slot, with a term above the one there.
func (l *lab) takeOver(worker int, term int64, settled bool) Slot {
	l.Helper()
	s := Slot{Node: "other", Term: term, Nonce: "others", H: l.now + millis(labLease), Settled: settled}
	l.put(worker, s)
	return s
}

// A slot that was taken over is fenced also when /cluster is missing then: our
// clock may be behind that of those who saw our lease run out.
func TestFencedAlthoughTheClusterRecordIsLost(t *testing.T) {
	for name, after := range map[string]func(l *lab){
		"cluster missing":     func(l *lab) {},
		"cluster made anew":   func(l *lab) { l.init(Cluster{UUID: "other", Slots: 4, LeaseMs: l.cl.LeaseMs}) },
		"settled, equal term": func(l *lab) { l.takeOver(0, 1, true) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 4)
			a := l.serving("A")
			l.takeOver(0, 2, true)
			l.remove(clusterPath)
			after(l)
			was := l.slot(0)
			_, err := a.beat()
			wantFenced(t, err)
			if got := l.slot(0); got != was {
				t.Errorf("the new holder's record was overwritten by %+v", got)
			}
		})
	}
}

var _ = errors.Is
var _ = time.Second
