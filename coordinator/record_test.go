package coordinator

import (
	"math"
	"strings"
	"testing"
)

func TestParseSlot(t *testing.T) {
	held := Slot{Node: "n", Nonce: "x", Term: 1, LeaseUntil: 5}
	for name, s := range map[string]Slot{
		"never held":          freeSlot(),
		"held":                held,
		"kept for its holder": {LeaseUntil: 5, Lost: true},
		"released":            {Node: "n", Nonce: "x", Term: 4, LeaseUntil: 5, Released: true},
		"with everything": {Node: "n", Ticket: "t", Nonce: "x", Term: 4, LeaseUntil: 5, Confirmed: true, Stopped: true,
			StoppedAt: 4, ReportedClock: 2,
			Generation: math.MaxUint64, HeartbeatMs: 1, RTTMs: 1, State: "serving", Labels: Labels{Name: "a", Host: "b",
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
		if tk := parseTicket(b); parseTicket(mustMarshal(tk)) != tk {
			t.Errorf("%+v became %+v", tk, parseTicket(mustMarshal(tk)))
		}
		s := parseSlot(b)
		if (Cluster{}).JudgeFree(s, false, math.MaxInt32, math.MaxInt32) == Free && s.LeaseUntil == 0 && !(s.Released &&
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
