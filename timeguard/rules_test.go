package timeguard

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flaked/flaked/internal/core/limits"
)

func TestRollbackPolicies(t *testing.T) {
	const none = -1
	rows := []struct {
		policy         string
		behind, waited time.Duration
		pause          time.Duration // none: refused
	}{
		{"leaf", 1, 0, 2},
		{"leaf", 5 * time.Millisecond, 0, 10 * time.Millisecond},
		{"leaf", 5*time.Millisecond + 1, 0, none},
		{"leaf", time.Millisecond, 2 * time.Millisecond, none},
		{"refuse", 1, 0, none},
		{"wait", 7 * time.Millisecond, 0, 7 * time.Millisecond},
		{"wait", time.Second, 0, 50 * time.Millisecond},
		{"wait", time.Second + 1, 0, none},
		{"wait=2s", time.Second, time.Second, 50 * time.Millisecond},
		{"wait=2s", time.Second, time.Second + 1, none},
		{"coast", 5 * time.Millisecond, 0, 10 * time.Millisecond},
		{"coast", 3 * time.Second, 0, none},
		{"rollback-bits", 5 * time.Millisecond, 0, 10 * time.Millisecond},
		{"rollback-bits", time.Second, 0, none},
	}
	for _, r := range rows {
		p, err := ParseRollbackPolicy(r.policy)
		if err != nil {
			t.Fatal(err)
		}
		pause, ok := p.Wait(r.behind, r.waited)
		if ok != (r.pause != none) || ok && pause != r.pause {
			t.Errorf("%s, behind by %s, waited %s: %s, %t", r.policy, r.behind, r.waited, pause, ok)
		}
	}
}

func TestParseRollbackPolicy(t *testing.T) {
	for in, want := range map[string]string{
		"leaf": "leaf", "refuse": "refuse", "wait": "wait=1s", "wait=500ms": "wait=500ms", "wait=10s": "wait=10s",
		"coast": "coast=2s", "coast=4s": "coast=4s", "rollback-bits": "rollback-bits",
	} {
		p, err := ParseRollbackPolicy(in)
		if err != nil || p.String() != want {
			t.Errorf("%s: %s, %v", in, p, err)
		}
		if again, err := ParseRollbackPolicy(p.String()); err != nil || again != p {
			t.Errorf("%s read back as %s, %v", p, again, err)
		}
	}
	if p := (RollbackPolicy{}).String(); p != "leaf" {
		t.Errorf("the zero policy is %s", p)
	}
	for _, in := range []string{"", "Leaf", "leaf=5ms", "refuse=", "wait=", "wait=0s", "wait=-1s", "wait=11s",
		"coast=4001ms", "coast=soon", "rollback-bits=2"} {
		if p, err := ParseRollbackPolicy(in); err == nil {
			t.Errorf("%q is %s", in, p)
		}
	}
}

func TestLease(t *testing.T) {
	day := 24 * time.Hour
	rows := []struct{ most, served, want time.Duration }{
		{day, 0, time.Minute},
		{day, -time.Hour, time.Minute}, // a file whose count is wrong
		{day, time.Minute, 3 * time.Minute},
		{day, 12 * time.Hour, day},
		{day, 1<<63 - 1, day},
		{30 * time.Second, 0, 30 * time.Second},
	}
	for _, r := range rows {
		if got := Lease(r.most, r.served); got != r.want {
			t.Errorf("%+v: %s", r, got)
		}
	}
}

func TestNextReservedNeverGoesDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instant := rapid.Int64Range(0, 1<<45)
		m, now, h := instant.Draw(t, "m"), instant.Draw(t, "now"), instant.Draw(t, "h")
		window := time.Duration(rapid.Int64Range(1, int64(limits.MaxReserve)).Draw(t, "window"))
		next := NextReserved(m, now, h, window)
		if next < m || next > max(m, h) || next > max(m, now+window.Milliseconds()) {
			t.Fatalf("M %d -> %d at %d below H %d", m, next, now, h)
		}
	})
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func TestMeasureOffset(t *testing.T) {
	rows := []struct {
		name              string
		sent, acked, mark int64
		want              Offset
	}{
		{"exact", 1000, 1000, 1000, Offset{0, ms(1)}},
		{"midway", 1000, 1010, 1005, Offset{0, ms(6)}},
		{"ahead", 6000, 6002, 1001, Offset{ms(5000), ms(2)}},
		{"behind", 1000, 1002, 6001, Offset{ms(-5000), ms(2)}},
		{"stepped back meanwhile", 1000, 900, 1000, Offset{0, ms(1)}},
	}
	for _, r := range rows {
		if got := MeasureOffset(r.sent, r.acked, r.mark); got != r.want {
			t.Errorf("%s: %+v, want %+v", r.name, got, r.want)
		}
	}
}

func TestClockIsWrongOnlyByMajority(t *testing.T) {
	leader := Offset{}
	at := func(ahead ...int64) (o []Offset) {
		o = append(o, leader)
		for _, a := range ahead {
			o = append(o, Offset{ms(a), ms(2)})
		}
		return o
	}
	hour := int64(time.Hour / time.Millisecond)
	rows := []struct {
		name    string
		own     int64
		voters  []Offset
		wrong   bool
		against int
	}{
		{"nobody to ask", 0, nil, false, 0},
		{"the leader alone", hour, at(), true, 1},
		{"within tolerance", 5000, at(0, 0), false, 0},
		{"just beyond, but within the error", 5002, at(), false, 0},
		{"one of five an hour off: it", hour, at(1, -1, 0, 2), true, 5},
		{"one of five an hour off: the others", 0, at(hour, 1, -1, 2), false, 1},
		{"the leader an hour off", 0, []Offset{{Ahead: ms(hour)}, {}, {}}, false, 1},
		{"a draw", 0, at(hour), false, 1},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			v := Judge(Offset{ms(r.own), ms(2)}, r.voters, limits.ClocksAgree)
			if v.Wrong() != r.wrong || v.Against != r.against || v.Verified() != (len(r.voters) > 0) {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestThreeWrongRoundsInARowRefuse(t *testing.T) {
	good, bad, nobody := Verdict{Voters: 3}, Verdict{Voters: 3, Against: 2}, Verdict{}
	var r Rounds
	for i, row := range []struct {
		v    Verdict
		want bool
	}{
		{bad, false}, {bad, false}, {good, false},
		{bad, false}, {bad, false}, {nobody, false}, {bad, true}, {bad, true}, {nobody, true}, {good, false},
	} {
		if got := r.Add(row.v); got != row.want || r.Wrong() != got {
			t.Errorf("round %d: %v", i, got)
		}
	}
}
