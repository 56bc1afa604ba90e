package e2e

import (
	"bytes"
	"os"
	"testing"

	"github.com/flaked/flaked/internal/testkit/harness"
)

// The shipped binary contains no code that injects faults, and names no variable by which tests shorten times that the
// rules of safety rely on.
func TestShippedBinaryHasNothingOfTheTests(t *testing.T) {
	t.Parallel()
	inShipped, inClocked := content(t, harness.Shipped), content(t, harness.Clocked)
	for _, text := range []string{"FLAKED_TEST_", "TESTCLOCK_FD"} {
		if bytes.Contains(inShipped, []byte(text)) {
			t.Errorf("the shipped binary contains %s", text)
		}
		if !bytes.Contains(inClocked, []byte(text)) {
			t.Errorf("no binary contains %s: this test looks for the wrong text", text)
		}
	}
	// Names of functions stand in every binary of Go.
	for _, text := range []string{"flaked/internal/testkit/", "injected fault", ").SetFault", ").Partition", ").LagTo"} {
		if bytes.Contains(inShipped, []byte(text)) {
			t.Errorf("the shipped binary contains %q, which injects faults", text)
		}
	}
	if !bytes.Contains(inShipped, []byte("flaked/internal/core/store.(*MemSession).Multi")) {
		t.Error("the shipped binary does not name its functions: this test cannot see what it contains")
	}
}

func content(t *testing.T, b *harness.Build) []byte {
	t.Helper()
	data, err := os.ReadFile(b.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
