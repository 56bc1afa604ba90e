package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBench(t *testing.T) {
	now, slow := int64(0), counting()
	for _, row := range []struct {
		name           string
		reply          func(string) string
		args           string
		code           int
		stdout, stderr string
	}{
		{"well", counting(), "", exitOK, "no duplicates, increasing on each connection", ""},
		{"a batch", counting(), "--batch 10", exitOK, "IDS       ", ""},
		{"at a rate", counting(), "--rate 200", exitOK, "200 requests a second, connections 1, pipeline 1", ""},
		{"a slow rate", counting(), "--rate 0.5", exitOK, ": 0.5 requests a second, connections 1", ""},
		{"the same ID", says("2071483623882690560\n"), "", exitFailure, "wrong: 2071483623882690560 received again " +
			"on connection 0", "duplicate IDs"},
		{"back", func(string) string { now++; return fmt.Sprintln(2071483623882690560 - now) }, "", exitFailure,
			"OUT OF ORDER on their connection", "out of order"},
		{"errors", says("-NOTREADY starting\n"), "", exitFailure, "NOTREADY ", "errors, most of them NOTREADY. Ask"},
		{"no node", says("what?\n"), "", exitFailure, "protocol ", "most of them protocol"},
		{"too slow", func(line string) string { <-time.After(20 * time.Millisecond); return slow(line) },
			"--rate 100000 --timeout 1s", exitDegraded, "were due, and not answered in time",
			"did not keep up with 100,000 requests a second"},
		{"hangs", says("hang"), "--timeout 100ms", exitFailure, "timeout ", "most of them timeout"},
	} {
		t.Run(row.name, func(t *testing.T) {
			addr := fakeNode(t, "tcp", "127.0.0.1:0", row.reply)
			args := append([]string{"bench", "--addr", addr, "--conns", "1", "--warmup", "0s", "--duration",
				"200ms"}, strings.Fields(row.args)...)
			call(t, "", args...).wants(t, row.code, row.stdout, row.stderr)
		})
	}
}

func TestLatenciesHaveThreeDigitsAndAUnit(t *testing.T) {
	for us, want := range map[float64]string{0: "0us", 12.34: "12.3us", 999.4: "999us", 999.5: "1ms", 1000: "1ms",
		999_499: "999ms", 999_500: "1s", 1_234_567: "1.23s"} {
		if got := microsText(us); got != want {
			t.Errorf("%g: %s, want %s", us, got, want)
		}
	}
}

// Ctrl-C ends a run early, with the results so far.
func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked, answer := 0, counting()
	addr := fakeNode(t, "tcp", "127.0.0.1:0", func(line string) string {
		if asked++; asked == 50 {
			cancel()
		}
		return answer(line)
	})
	r := callCtx(t, ctx, "", "bench", "--addr", addr, "--conns", "1", "--warmup", "0s", "--duration", "1h")
	r.wants(t, exitOK, ", interrupted\n", "")
	if !strings.Contains(r.stdout, "no duplicates") {
		t.Error(r.stdout)
	}
}

// Scripts rely on the fields.
func TestBenchJSON(t *testing.T) {
	addr := fakeNode(t, "unix", filepath.Join(t.TempDir(), "s"), counting())
	r := call(t, "", "bench", "--addr", addr, "--conns", "1", "--duration", "200ms", "--warmup", "0s", "-o", "json")
	r.wants(t, exitOK, "{", "")
	var doc map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ids", "latency_us.p999", "errors.by_code", "check.duplicates", "interrupted",
		"unanswered"} {
		at := any(doc)
		for _, key := range strings.Split(name, ".") {
			at = at.(map[string]any)[key]
		}
		if at == nil {
			t.Errorf("there is no %s in %s", name, r.stdout)
		}
	}
	if doc["requests"].(float64) == 0 || doc["addr"] != addr {
		t.Error(r.stdout)
	}
}
