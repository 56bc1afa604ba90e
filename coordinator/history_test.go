package coordinator

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// ends returns how the holding of each former holder of a slot ended.
func (s Slot) ends() (ends []string) {
	for _, f := range s.History {
		ends = append(ends, f.Ended)
	}
	return ends
}

// A slot's record lists the former holders and how each holding ended.
func TestHistory(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	since := l.slot(0).Granted
	a.must(a.halt())
	l.pass(time.Second)
	a.must(a.start()) // the same holder
	if s := l.slot(0); len(s.History) > 0 || s.Granted != since || s.FromTerm != 1 || s.Term != 2 {
		t.Errorf("after a restart %+v", s)
	}
	a.confirm()
	a.must(a.leave())
	if s := l.slot(0); len(s.History) > 0 || s.Granted != since {
		t.Errorf("after a release %+v", s)
	}
	b := l.serving("B")
	if s := l.slot(0); !reflect.DeepEqual(s.History, History{{Node: a.disk.claim.Node, Term: 1, Granted: since,
		Ended: EndedReleased}}) || s.FromTerm != 3 || s.Granted < since {
		t.Errorf("%+v", s)
	}
	b.must(b.halt())
	l.pass(labLease + 6*time.Second)
	c := l.serving("C")
	c.crash()
	l.expire()
	l.pass(labLease + 6*time.Second)
	d := l.serving("D")
	if _, err := l.operator().ForceRelease(t.Context(), l.examine(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.beat(); err == nil {
		t.Error("it was not fenced")
	}
	l.pass(labLease + 6*time.Second)
	e := l.serving("E")
	e.mustBeat()
	if names := l.children(ticketsPath); len(names) != 1 {
		t.Errorf("tickets of former holders are left: %q", names)
	}
	if got, want := l.slot(0).ends(), []string{"released", "stopped", "vanished", "taken"}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("%q, want %q", got, want)
	}
	e.must(e.leave())
	l.serving("F")
	if got, want := l.slot(0).ends(), []string{"stopped", "vanished", "taken", "released"}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("%q, want %q", got, want)
	}
	l.disjoint()
}

// A new node takes the slot of a holder that ZooKeeper has lost. When the holder comes back, the history says that the
// new node gave way. A record that is put back after a loss has no history.
func TestHistoryOfAnHolderWhoComesBack(t *testing.T) {
	l := newLab(t, 1)
	empty := l.mem.Snapshot()
	a := l.serving("A")
	a.sess.Partition()
	l.mem.Restore(empty)
	l.forget()
	b := l.node("B")
	b.must(b.register())
	a.sess.Heal()
	a.mustBeat()
	s := l.slot(0)
	if got, want := s.ends(), []string{"gave way"}; !reflect.DeepEqual(got, want) || s.Name != "A" {
		t.Errorf("%q, want %q, in %+v", got, want, s)
	}
	l.remove(SlotPath(0))
	a.mustBeat()
	if s := l.slot(0); len(s.History) > 0 || s.Granted != 0 || s.FromTerm != s.Term {
		t.Errorf("put back: %+v", s)
	}
}

// A history that cannot be read must not make the whole record unreadable.
func TestHistoryIsBounded(t *testing.T) {
	const held = `{"node":"n","nonce":"x","term":1,"lease_until":5,"history":`
	for _, history := range []string{`"x"`, `7`, `{}`, `[1,2]`, `[{"node":3}]`, `null`, `[]`} {
		if s := parseSlot([]byte(held + history + "}")); s.Term != 1 || len(s.History) != 0 {
			t.Errorf("%s: %+v", history, s)
		}
	}
	many := strings.TrimSuffix(strings.Repeat(`{"node":"n","ended":"of a later release","more":1},`, 9), ",")
	if s := parseSlot([]byte(held + "[" + many + "]}")); len(s.History) != maxHistory {
		t.Errorf("%+v", s.History)
	}

	short := PastHolder{Node: "d3b07384-d113-4ec6-a5a2-1d2f9c1b7a01", Term: 1234, Granted: 1795196809000,
		Ended: EndedReleased}
	data, err := json.Marshal(History{short, short, short, short})
	if err != nil || len(data) > 500 {
		t.Errorf("%d bytes of %s, %v", len(data), data, err)
	}
}

// Holders that gave the slot back before they confirmed are not in the history. They would push out a holder that must
// find itself there (see Claim.wasLost).
func TestHistoryOmitsHoldersThatNeverConfirmed(t *testing.T) {
	l := newLab(t, 1)
	l.serving("A").must(l.nodes[0].leave())
	for range 5 {
		n := l.node("N")
		n.must(n.register())
		n.must(n.leave())
	}
	if past := l.slot(0).History; len(past) != 1 || past[0].Node != l.nodes[0].disk.claim.Node {
		t.Errorf("%+v", past)
	}
}
