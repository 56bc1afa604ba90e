//go:build unix

package zktest

import "testing"

func TestPathName(t *testing.T) {
	if got, want := pathName("TestX/a_b c/ü"), "TestX-a-b-c--"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
