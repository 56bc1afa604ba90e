//go:build unix

package zktest

import "testing"

func TestTakenPortsAreNotGivenAgain(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port, release, err := takePort()
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if seen[port] {
			t.Fatalf("port %d given twice", port)
		}
		seen[port] = true
		if again, err := claim(port); err == nil {
			again()
			t.Fatalf("port %d can be claimed twice", port)
		}
	}
}
