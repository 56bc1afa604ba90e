package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/flaked/flaked/client"
)

// TestRun runs the example against a node of the flaked binary.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	binary, node := filepath.Join(dir, "flaked"), "unix:"+filepath.Join(dir, "s")
	build := exec.Command("go", "build", "-o", binary, "./cmd/flaked")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var log bytes.Buffer
	serve := exec.Command(binary, "serve", "--dev", "--listen", node, "--admin", "off")
	serve.Stdout, serve.Stderr = &log, &log
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
		if t.Failed() {
			t.Logf("--- the node's log\n%s", log.String())
		}
	})
	ids, err := client.New(client.Config{Addrs: []string{node}, Patience: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	if _, err := ids.Next(t.Context()); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := run(ctx, &out, node, dir); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^(\d{19} of customer-\d+, \d+ cents\n){3}1000 orders since the start, in 4 databases\n1000 orders in 3 databases, with the same keys\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("%s", out.String())
	}
}
