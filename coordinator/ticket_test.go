package coordinator

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestTicketNumber(t *testing.T) {
	for name, want := range map[string]int64{
		"/tickets/n-0000000007": 7,
		"n-0000000000":          0,
		"n-2147483647":          math.MaxInt32,
		"n--2147483648":         math.MinInt32,
		"n--1000000000":         -1_000_000_000,
		"n--999999999":          -999_999_999,
		"n--000000001":          -1,
		"a-b-c-0000000012":      12,
		"a-b--2147483648":       math.MinInt32,
		"a--b-0000000012":       12,
		"7-0000000012":          12,
		"/a-1/b-2/n-0000000003": 3,
		"node-10-0000000010":    10,
	} {
		if got, err := ticketNumber(name); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, got, err, want)
		}
	}
	for _, name := range []string{
		"", "/", "n", "n-", "n--", "n-1", "n-000000001", "n-00000000001", "0000000001", "n-000000000a", "n-0000000001x",
		"n--1", "n--00000000001", "n-٠٠٠٠٠٠٠٠٠٠", "under_score0x000000001",
	} {
		if got, err := ticketNumber(name); err == nil {
			t.Errorf("%q is ticket %d", name, got)
		}
	}
}

func TestFirstSlot(t *testing.T) {
	for _, tc := range []struct {
		ticket int64
		slots  int
		want   int
	}{
		{0, 1024, 0}, {1023, 1024, 1023}, {1024, 1024, 0}, {1100, 1024, 76}, {5, 1, 0},
		{-1, 1024, 1023}, {-1024, 1024, 0}, {math.MinInt32, 1024, 0}, {math.MinInt32, 3, 1}, {math.MaxInt32, 1 << 24,
			1<<24 - 1},
	} {
		if got := firstSlot(tc.ticket, tc.slots); got != tc.want {
			t.Errorf("%d of %d: %d, want %d", tc.ticket, tc.slots, got, tc.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 1<<24).Draw(t, "slots")
		ticket := rapid.Int64Range(math.MinInt32, math.MaxInt32).Draw(t, "ticket")
		got := firstSlot(ticket, slots)
		if got < 0 || got >= slots || (ticket-int64(got))%int64(slots) != 0 {
			t.Fatalf("%d", got)
		}
		if next := firstSlot(ticket+1, slots); next != (got+1)%slots {
			t.Fatalf("%d follows %d", next, got)
		}
	})
}
