// Package await waits for conditions in tests that cannot import package harness.
package await

import (
	"testing"
	"time"
)

// Until waits for a condition, and fails the test after 30 s.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !Within(30*time.Second, ok) {
		t.Fatalf("waited in vain: %s", what)
	}
}

// Within asks ok at once, and then every millisecond, and reports whether it returned true within the limit.
func Within(limit time.Duration, ok func() bool) bool {
	never := time.After(limit)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-never:
			return false
		}
	}
	return true
}
