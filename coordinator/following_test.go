package coordinator

import "testing"

// The change is number 6, made in incarnation 2.
func TestNotFollowed(t *testing.T) {
	at := Followed{Changes: 7, Incarnation: 2}
	for _, row := range []struct {
		name   string
		node   Followed
		live   bool
		behind bool
	}{
		{"followed", at, true, false},
		{"followed more", Followed{Changes: 9, Incarnation: 2}, true, false},
		{"not yet", Followed{Changes: 6, Incarnation: 2}, true, true},
		{"of a version without sequences", Followed{}, true, true},
		{"has counted more in an incarnation whose changes were lost", Followed{Changes: 9, Incarnation: 1}, true,
			true},
		{"in an incarnation after the change", Followed{Changes: 7, Incarnation: 3}, true, false},
		{"in an incarnation after the change, which it lacks", Followed{Changes: 5, Incarnation: 3}, true, true},
		{"started again and has not read the changes", Followed{Changes: 1}, true, true},
		{"cut off", Followed{Changes: 6, Incarnation: 2}, false, false},
	} {
		slots := []Entry{{Worker: 2, Live: true, Slot: Slot{Followed: at}}, {Worker: 3, Live: row.live,
			Slot: Slot{Followed: row.node}}}
		if got := NotFollowed(slots, at); len(got) > 0 != row.behind || row.behind && got[0].Worker != 3 {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
}
