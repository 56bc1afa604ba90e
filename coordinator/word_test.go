package coordinator

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

func TestWord(t *testing.T) {
	w := word{}.of(7, 1000, 50)
	if w.of(7, 2000, 60) != w || w.of(8, 2000, 60) != (word{session: 8, began: 2000, zxid: 60}) {
		t.Error("it does not begin with the session")
	}
	for name, row := range map[string]struct {
		peer Slot
		zxid int64
		want bool
	}{
		"written since":      {Slot{Incarnation: 2, Followed: Followed{Compared: 3}}, 51, true},
		"no named sequences": {Slot{Incarnation: 2}, 51, true},
		"written before":     {Slot{Incarnation: 2, Followed: Followed{Compared: 3}}, 50, false},
		"not compared":       {Slot{Incarnation: 2, Followed: Followed{Compared: NotCompared}}, 51, false},
		"compared before":    {Slot{Incarnation: 2, Followed: Followed{Compared: 2}}, 51, false},
		"not compared, and stops": {
			Slot{Incarnation: 2, Stopped: true, Followed: Followed{Compared: NotCompared}}, 51, true,
		},
		"another incarnation": {Slot{Incarnation: 3, Followed: Followed{Compared: 3}}, 51, false},
	} {
		if got := w.given(row.peer, store.Stat{Mzxid: row.zxid}, 2); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for want, w := range map[int64]word{math.MaxInt64: {}, 0: {session: 7, began: 1000, all: true},
		1000 + int64(time.Second): w} {
		if got := w.relyAt(time.Second); got != want {
			t.Errorf("%+v: from %d, want %d", w, got, want)
		}
	}
}

// A node asks up to mostAsked peers for their word in a new session. With more, it asks nobody, and waits.
func TestManyPeersAreNotAsked(t *testing.T) {
	for _, peers := range []int{mostAsked, mostAsked + 1} {
		l := newLab(t, 128)
		for i := range peers {
			l.serving(fmt.Sprint("P", i))
		}
		a := l.node("A")
		a.must(a.register())
		a.mustBeat()
		a.peers()
		if asks := peers <= mostAsked; a.h.Waits() != asks {
			t.Errorf("%d peers: waits %t", peers, a.h.Waits())
		}
		if a.h.OthersTake() { // none says so, and it has not asked more than mostAsked
			t.Errorf("%d peers: waits for those that take values", peers)
		}
		if _, from := a.h.RelyOn(); from != a.bootClock()+int64(labConfirm) {
			t.Errorf("%d peers: relies from %d", peers, from)
		}
	}
}
