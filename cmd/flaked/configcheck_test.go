package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// config check reports everything that serve would refuse, and where each value comes from.
func TestConfigCheck(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.yaml", "zk: zk1:2181,zk2:2181\nlisten: [0.0.0.0:7609, 'unix:/run/flaked/sock']\ntoken-file: "+file("tokens", strings.Repeat("a", 64)+"\n")+"\nheartbeat: 2s\n")
	t.Setenv("FLAKED_MAX_BATCH", "500")
	t.Setenv("FLAKED_ZK_AUTH", "user:hunter2")
	r := call(t, "", "config", "check", "--config", good, "--workers", "2", "-o", "json")
	var doc configReport
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || r.code != exitOK || !doc.OK || len(doc.Errors) != 0 {
		t.Fatalf("%v: %+v", err, r)
	}
	got := make(map[string]givenOption)
	for _, o := range doc.Settings {
		got[o.Name] = o
	}
	for name, want := range map[string][2]string{
		"zk": {"zk1:2181,zk2:2181", "file"}, "listen": {"0.0.0.0:7609,unix:/run/flaked/sock", "file"}, "heartbeat": {"2s", "file"},
		"max-batch": {"500", "environment"}, "workers": {"2", "command line"}, "reserve": {"3s", "default"}, "layout": {"the cluster's, leaf in a new one", "default"},
		"FLAKED_ZK_AUTH": {"(secret)", "environment"},
	} {
		if o := got[name]; o.Value != want[0] || o.From != want[1] {
			t.Errorf("%s: %+v, want %q", name, o, want)
		}
	}
	if strings.Contains(r.stdout, "hunter2") {
		t.Error("it prints a secret")
	}
	call(t, "", "config", "check", "--config", good).wants(t, exitOK, "max-batch           500", "")

	bad := "config check --zk h:1 --listen 0.0.0.0:1 --listen 127.0.0.1:7610 --token-file /nonexistent --heartbeat 1ms --reserve 1s --workers 0 --engine x --tls-cert a --bootstrap --lease 1ms"
	r = call(t, "", strings.Fields(bad)...)
	r.wants(t, exitUsage, "SETTING", "flaked serve would refuse these settings: 8 errors\n")
	for _, want := range []string{
		"--workers must be 1 to 64, not 0", "--tls-cert and --tls-key: only one is given", "--engine must be auto, loops or goroutines", "--token-file: file /nonexistent not found",
		"--listen 0.0.0.0:1 can be reached from other machines", "--listen and --admin are both 127.0.0.1:7610", "heartbeat interval 1ms is too short", "the lease 1ms is too short",
	} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q", want)
		}
	}
	r = call(t, "", "config", "check", "--config", file("bad.yaml", "zk: h:1\nlissten: x\nheartbeat: soon\n"))
	r.wants(t, exitUsage, "", "line 2: lissten: ")
	r.wants(t, exitUsage, "", "line 3: heartbeat: ")
	call(t, "", "config", "check").wants(t, exitUsage, "SETTING", "--zk is required")
	call(t, "", "config", "check", "--dev").wants(t, exitOK, "SETTING", "")
}
