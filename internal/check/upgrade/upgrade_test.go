package upgrade

import (
	"slices"
	"testing"
)

func TestCompareNamesWhatIsLackingAndWhatIsNew(t *testing.T) {
	got := compare("codes", []string{"BUSY", "CLOCK"}, []string{"BUSY", "LATE"})
	want := []string{
		`codes: this version lacks "CLOCK", which a release has. Keep it: docs/operate.md says what may change`,
		`codes: "LATE" is new. Add it to internal/check/upgrade/testdata/names/codes.txt, because docs/operate.md ` +
			`promises that later versions keep it`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
