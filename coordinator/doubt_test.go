package coordinator

import "testing"

// If a lease had run out by the leader's clock, the holding goes on no earlier than now, and above the leader's time
// when that was noticed. If most voters agree with our clock, at most 5 s of the leader's lead are believed. BorrowMs
// is added.
func TestDoubtedFloorIsAboveTheLeadersTime(t *testing.T) {
	const noticed = int64(1_000_000)
	for name, row := range map[string]struct {
		stamp, now int64
		agreed     bool
		want       int64
	}{
		"the leader is behind": {noticed - 4_000, noticed + 900, true, noticed + 900},
		"the leader is ahead":  {noticed + 4_000, noticed + 900, true, noticed + 4_001},
		"the leader is far ahead, and most are not": {
			noticed + 60_000, noticed + 900, true, noticed + clocksAgree + 1,
		},
		"the leader is far ahead, and nobody says so": {noticed + 60_000, noticed + 900, false, noticed + 60_001},
		"it has passed what the leader read":          {noticed + 4_000, noticed + 9_000, true, noticed + 9_000},
	} {
		d := doubt{raised: true, now: noticed, stamp: row.stamp}
		if got := d.newFloor(evidence{now: row.now, agreed: row.agreed,
			mine: Cluster{BorrowMs: 300}}); got != row.want+300 {
			t.Errorf("%s: %d, want %d", name, got-noticed, row.want+300-noticed)
		}
	}
}

// A holding may be confirmed when its tenure can begin: a start waits 10 s at most, and BorrowMs is part of them.
func TestFloorTooFarAhead(t *testing.T) {
	const now, borrow = int64(1_000_000), 300
	for _, row := range []struct {
		ahead int64
		want  bool
	}{{-4_000, false}, {10_000 - borrow - 1, false}, {10_000 - borrow, true}, {60_000, true}} {
		hold := holdState{sinceGrant: sinceGrant{doubt: doubt{raised: true, now: now, stamp: now + row.ahead}}}
		if got := hold.floorTooFarAhead(evidence{now: now, mine: Cluster{BorrowMs: borrow}}); got != row.want {
			t.Errorf("%d ms ahead: %v", row.ahead, got)
		}
	}
}

// A floor that was saved when a lease had run out is above what was reserved before that.
func TestGoAloneKeepsTheHigherFloor(t *testing.T) {
	for _, row := range [][3]int64{{5000, 4000, 5000}, {4000, 5000, 5000}} {
		h := &Hold{holdState: holdState{Claim: Claim{Floor: row[0]}}}
		if h.GoAlone(row[1], 1); h.Floor != row[2] {
			t.Errorf("%v: floor %d", row, h.Floor)
		}
	}
}
