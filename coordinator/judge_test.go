package coordinator

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func instants() *rapid.Generator[int64] { return rapid.Int64Range(0, 4_000_000_000_000) }

func slots() *rapid.Generator[Slot] {
	return rapid.Custom(func(t *rapid.T) Slot {
		return Slot{
			Node: rapid.SampledFrom([]string{"", "me", "other"}).Draw(t, "node"), Nonce: rapid.SampledFrom([]string{"",
				"a", "b", "c"}).Draw(t, "nonce"),
			Term: rapid.Int64Range(-1, 4).Draw(t, "term"), Incarnation: rapid.Int64Range(0, 2).Draw(t, "incarnation"),
			LeaseUntil: instants().Draw(t, "h"),
			Confirmed:  rapid.Bool().Draw(t, "confirmed"), Stopped: rapid.Bool().Draw(t, "stopped"),
			Released: rapid.Bool().Draw(t, "released"), Lost: rapid.Bool().Draw(t, "lost"),
			Generation: rapid.Uint64Range(0, 9).Draw(t, "generation"),
		}
	})
}

func claims() *rapid.Generator[Claim] {
	return rapid.Custom(func(t *rapid.T) Claim {
		return Claim{
			Owner: Owner{"me", 3}, Term: rapid.Int64Range(0, 4).Draw(t, "term"), Nonce: rapid.SampledFrom([]string{"",
				"a"}).Draw(t, "nonce"),
			PendingNonce: rapid.SampledFrom([]string{"", "b"}).Draw(t, "pending"), EverConfirmed: rapid.Bool().Draw(t,
				"confirmed"),
			LeaseUntil: instants().Draw(t, "h"), Generation: rapid.Uint64Range(0, 9).Draw(t, "generation"),
			Incarnation: rapid.Int64Range(0, 2).Draw(t, "incarnation"),
		}
	})
}

// The record that a holder writes carries the holder's claim. It does not lower the lease bound (LeaseUntil).
func TestRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, claim := slots().Draw(t, "old"), claims().Draw(t, "claim")
		now, lease := instants().Draw(t, "now"), rapid.SampledFrom([]time.Duration{0, time.Minute, labW}).Draw(t,
			"lease")
		e := evidence{now: now, self: Slot{Labels: Labels{Name: "n"}, HeartbeatMs: 1000, RTTMs: 3}}
		s := claim.record(e, Cluster{}, old, lease, 1<<62)
		if s.Node != "me" || s.Term != claim.Term || s.Nonce != claim.Nonce || s.Generation != claim.Generation ||
			s.Name != "n" || s.ReportedClock != now || s.HeartbeatMs != 1000 || s.RTTMs != 3 {
			t.Fatalf("%+v", s)
		}
		if s.Confirmed || s.Stopped || s.Released || s.Lost || s.StoppedAt != 0 {
			t.Fatalf("carried over: %+v", s)
		}
		if s.LeaseUntil < old.LeaseUntil || s.LeaseUntil < claim.LeaseUntil {
			t.Fatalf("went down: %+v", s)
		}
		if lease == 0 && s.LeaseUntil != max(old.LeaseUntil, claim.LeaseUntil) {
			t.Fatalf("moved by a clock that is not trusted: %+v", s)
		}
		if lease > 0 && s.LeaseUntil < now+lease.Milliseconds() {
			t.Fatalf("not extended: %+v", s)
		}
	})
}

// A record is ours only if it has our node and one of our nonces. In the same incarnation, another record always fences
// if its term is higher, and never if its term is lower. A record of a later incarnation fences if it is confirmed. A
// record of an earlier one never fences.
func TestJudgeSlotProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		found, mine := slots().Draw(t, "found"), claims().Draw(t, "mine")
		got := judgeSlot(&found, mine)
		ours := found.Node == mine.Node && found.Nonce != "" && (found.Nonce == mine.Nonce ||
			found.Nonce == mine.PendingNonce)
		switch {
		case ours != (got == FoundOurs):
			t.Fatalf("%s", got)
		case ours:
		case found.Incarnation != mine.Incarnation:
			if fenced := found.Incarnation > mine.Incarnation && found.Confirmed; fenced != (got == FoundFenced) {
				t.Fatalf("%s", got)
			}
		case found.Term > mine.Term && got != FoundFenced, found.Term < mine.Term && got != FoundLost:
			t.Fatalf("%s", got)
		}
		err := judgeResume(&found, mine)
		if err == nil && (!ours || found.Released || found.Generation > mine.Generation) {
			t.Fatal("resumed")
		}
		if no := (*NotOursError)(nil); errors.As(err, &no) && no.Lost && got != FoundLost {
			t.Fatal("put back what another has")
		}
		h := Hold{holdState: holdState{Claim: mine}}
		h.recognise(&found)
		if adopted := h.Held(); ours && (adopted.Nonce != found.Nonce ||
			adopted.Nonce == mine.PendingNonce && adopted.PendingNonce != "") {
			t.Fatalf("adopted %+v", adopted)
		}
	})
}

// A slot that is not live is free if and only if it can be read and its lease bound has passed by both clocks. A
// released slot is free up to 10 s before the bound, any other slot only after the grace time.
func TestJudgeFreeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := slots().Draw(t, "slot")
		now, leader := instants().Draw(t, "now"), instants().Draw(t, "leader")
		cl := Cluster{LeaseMs: rapid.Int64Range(1, 200_000).Draw(t, "lease")}
		got := cl.JudgeFree(s, false, now, leader)
		if got != cl.JudgeFree(s, false, leader, now) || cl.JudgeFree(s, true, now, leader) != Live {
			t.Fatal("not symmetric, or live and free")
		}
		slack := -min(5_000, cl.LeaseMs/12)
		if s.Released {
			slack = 10_000
		}
		if free := s.Term >= 0 && s.LeaseUntil <= min(now, leader)+slack; free != (got == Free) {
			t.Fatalf("%d", got)
		}
	})
}

// Another node has raised the incarnation. Before our record was written in it, ZooKeeper was put back to data from
// before.
func TestJudgeGoesByTheHighestIncarnationSeen(t *testing.T) {
	ours := Claim{Owner: Owner{Node: "a"}, Nonce: "a", Term: 1, Incarnation: 2}
	v := view{cl: &Cluster{UUID: "c", Incarnation: 2}, slot: &Slot{Node: "a", Nonce: "a", Term: 1, Incarnation: 2}}
	for seen, want := range map[int64]Finding{2: FoundOurs, 3: FoundLost} {
		got, why := (holdState{Claim: ours}).judge(v, Cluster{UUID: "c", Incarnation: seen})
		if got != want {
			t.Errorf("seen %d: %s, %s", seen, got, why)
		}
	}
}
