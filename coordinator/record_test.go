package coordinator

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

func TestParseSlot(t *testing.T) {
	held := Slot{Node: "n", Nonce: "x", Term: 1, LeaseUntil: 5}
	for name, s := range map[string]Slot{
		"never held":          freeSlot(),
		"held":                held,
		"kept for its holder": {LeaseUntil: 5, StandsIn: true},
		"released":            {Node: "n", Nonce: "x", Term: 4, LeaseUntil: 5, Released: true},
		"with everything": {Node: "n", Ticket: "t", Nonce: "x", Term: 4, LeaseUntil: 5, Confirmed: true, Stopped: true,
			StoppedAt: 4, ReportedClock: 2,
			Generation: math.MaxUint64, HeartbeatMs: 1, RTTMs: 1, Phase: "serving", Labels: Labels{Name: "a", Host: "b",
				PID: 3, Address: "c", Version: "d", Admin: "e"},
			FromTerm: 2, Granted: 1, ReleasedBy: "me", History: History{{Node: "m", Ended: EndedTaken}}},
	} {
		if got := parseSlot(s.marshal()); !same(got, s) {
			t.Errorf("%s: %+v became %+v", name, s, got)
		}
	}
	later := `{"node":"n","nonce":"x","term":1,"lease_until":5,"of":"a later release","deep":{"er":[1]}}`
	if s := parseSlot([]byte(later)); !same(s, held) {
		t.Errorf("unknown fields: %+v", s)
	}
	for _, b := range []string{
		"", "null", "{}", "[]", "7", `"x"`, "true", "{", `{"term":1}`,
		`{"term":-1,"node":"n","nonce":"x","lease_until":5}`, `{"released":false}`, `{"lost":true}`,
		`{"node":"n","nonce":"x","term":1}`, `{"node":"n","term":1,"lease_until":5}`,
		`{"nonce":"x","term":1,"lease_until":5}`, `{"node":"n","nonce":"x","term":1,"lease_until":-5}`,
		`{"node":"n","nonce":"x","term":"1","lease_until":5}`, `{"node":"n","nonce":"x","term":1e300,"lease_until":5}`,
		`{"node":"n","nonce":"x","lease_until":5}`, `{"lease_until":5}`,
		`{"node":"n","nonce":"x","term":1,"lease_until":5}{}`, "\x00\xff", strings.Repeat("[", 100_000),
	} {
		if s := parseSlot([]byte(b)); !same(s, Slot{Term: -1}) {
			t.Errorf("%.40q is %+v", b, s)
		}
	}
	if s := parseSlot(nil); s.Term != -1 {
		t.Errorf("nothing is %+v", s)
	}
}

// same reports whether two records are equal.
func same(a, b Slot) bool { return string(a.marshal()) == string(b.marshal()) }

// Whatever data a slot has, no node may take it without a lease bound, unless it was never held. A record that can be
// read stays the same when it is written and read again.
// So do the other records. An error names the record.
func FuzzRecords(f *testing.F) {
	for _, s := range []string{
		`{"node":"n","nonce":"x","term":1,"lease_until":5,"history":[{"node":"m","ended":"taken"}]}`,
		`{"released":true}`, `{}`, `{"uuid":"u","slots":4,"highest_slot":1}`,
		`{"uuid":"u","slots":4,"highest_slot":-1,"needs":"x"}`,
		`{"uuid":"u","slots":9000000000000000000,"highest_slot":8000000000000000000}`,
		`{"lost":true,"lease_until":5}`, `{"node":"n","name":"<"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCluster(b)
		if err != nil && !strings.Contains(err.Error(), clusterPath) && !strings.Contains(err.Error(), "Upgrade it") {
			t.Errorf("%q: %v", b, err)
		}
		again, wrong := parseCluster(c.marshal())
		if err == nil && (again != c || wrong != nil || c.HighestSlot >= min(c.Slots, 1<<24) || c.HighestSlot < -1) {
			t.Errorf("%+v became %+v, %v", c, again, wrong)
		}
		if tk := parseTicket(b); parseTicket(store.Marshal(tk)) != tk {
			t.Errorf("%+v became %+v", tk, parseTicket(store.Marshal(tk)))
		}
		s := parseSlot(b)
		if (Cluster{}).Availability(s, false, math.MaxInt32, math.MaxInt32) == Free && s.LeaseUntil == 0 && !(s.Released &&
			s.Nonce == "" && s.Term == 0) {
			t.Errorf("%q is free without a bound: %+v", b, s)
		}
		if s.Term >= 0 {
			if again := parseSlot(s.marshal()); !same(again, s) {
				t.Errorf("%+v became %+v", s, again)
			}
		}
	})
}

func TestParseCluster(t *testing.T) {
	good := Cluster{UUID: "u", Layout: "l", Slots: 4, HighestSlot: -1, LeaseMs: 1, ConfirmMs: 2, InUse: true,
		FrozenUntil: 3, Incarnation: 6}
	if got, err := parseCluster(good.marshal()); got != good || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, b := range []string{"", "null", "{}", "x", `{"uuid":"u"}`, `{"slots":4}`, `{"uuid":"u","slots":0}`,
		`{"uuid":"u","slots":"4"}`} {
		if c, err := parseCluster([]byte(b)); err == nil || !strings.Contains(err.Error(), "/cluster") {
			t.Errorf("%q is %+v, %v", b, c, err)
		}
	}
	older := `{"uuid":"u","slots":4,"used":63,"settled":true}`
	if c, err := parseCluster([]byte(older)); err == nil || !strings.Contains(err.Error(), "another release") {
		t.Errorf("an older release's record is %+v, %v", c, err)
	}
	newer := `{"uuid":"u","slots":4,"highest_slot":1,"needs":"x"}`
	if c, err := parseCluster([]byte(newer)); err == nil || !strings.Contains(err.Error(), "Upgrade it") {
		t.Errorf("a newer release's record is %+v, %v", c, err)
	}
}

// ends returns how the tenure of each former holder of a slot ended.
func (s Slot) ends() (ends []string) {
	for _, f := range s.History {
		ends = append(ends, f.Ended)
	}
	return ends
}

// A slot's record lists the former holders and how each tenure ended.
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
	empty := l.Mem.Snapshot()
	a := l.serving("A")
	a.sess.Partition()
	l.Mem.Restore(empty)
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
