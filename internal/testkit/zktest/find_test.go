//go:build unix

package zktest

import (
	"testing"
)

func TestFindUsesTheEnvironment(t *testing.T) {
	env := map[string]string{"FLAKED_ZK_JAVA": "/bin/sh", "FLAKED_ZK_CLASSPATH": "/b/*"}
	got, err := find(func(name string) string { return env[name] })
	if want := (Program{Java: "/bin/sh", Classpath: "/b/*"}); err != nil || got != want {
		t.Errorf("found %+v, %v; want %+v", got, err, want)
	}
}
