package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flaked/flaked/localcache"
)

func TestDrainWithoutANode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	call(t, "", "drain", "--state-dir", dir).wants(t, exitFailure, "",
		"--state-dir "+dir+": no state found. Correct the path")
	cache, err := localcache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	cache.Close()
	call(t, "", "drain", "--state-dir", dir).wants(t, exitUnreachable, "", "no running node uses "+dir)
	call(t, "", "drain", "--help").wants(t, exitOK, "with 3 if the\ndirectory exists and no running node uses it, "+
		"and with 1 otherwise: no such directory", "")
	call(t, "", "drain", "--help").wants(t, exitOK, "how long to wait until the node's process has ended", "")
}

func TestDefaultStateDir(t *testing.T) {
	if os.Geteuid() == 0 {
		if got := defaultStateDir(); got != "/var/lib/flaked" {
			t.Errorf("%q", got)
		}
		return
	}
	t.Setenv("XDG_STATE_HOME", "/x")
	if got := defaultStateDir(); got != "/x/flaked" {
		t.Errorf("%q", got)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", "/home/me")
	if got := defaultStateDir(); got != "/home/me/.local/state/flaked" {
		t.Errorf("%q", got)
	}
}
