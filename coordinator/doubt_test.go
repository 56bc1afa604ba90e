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
