package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/ops/health"
)

// FuzzConfig: any text in the file of --config sets the flags as they would be set on the command line, or is refused
// with the name of the file.
func FuzzConfig(f *testing.F) {
	for _, s := range []string{"text: a\nyes: true\nnumber: 7\ntime: 5s\nlist: [a, b]\nelsewhere: 3s\n", "list: a,b",
		"text: a\ntext: b",
		"a: &a [x]\nlist: *a", "<<: {text: a}", "---\n---\n", "nope: 1", "text: null", "number: 0x1_0", "yes: maybe",
		"\x00", "? [a]\n: b",
		"token: x", "text: |\n  a\n  b\n", "time: 1e3h", "text: !!binary aGk="} {
		f.Add([]byte(s))
	}
	file := filepath.Join(f.TempDir(), "flaked.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		got, failed := parse(t, "--config", file)
		if failed != "" {
			if !strings.Contains(failed, "--config "+file) && !strings.Contains(failed, "a shell replaces ~") ||
				len(failed) > 20*len(text)+1000 {
				t.Fatalf("%q: %s", text, failed)
			}
			return
		}
		var nodes map[string]yaml.Node
		if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&nodes); err != nil {
			if !reflect.DeepEqual(got, defaults()) {
				t.Fatalf("%q: %+v", text, got)
			}
			return
		}
		var args []string
		for name, node := range nodes {
			values := []string{node.Value}
			if node.Kind == yaml.SequenceNode {
				_ = node.Decode(&values)
			}
			for _, value := range values {
				if name != "elsewhere" {
					args = append(args, "--"+name+"="+value)
				}
			}
		}
		if want, failed := parse(t, args...); failed != "" || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %+v, want %+v %s", text, got, want, failed)
		}
	})
}

// FuzzStatus: status shows any records that ZooKeeper may have, and prints no control characters for the terminal.
func FuzzStatus(f *testing.F) {
	sequence := `{"id":"i","start":1,"increment":1,"max":9,"block":32,"supply_ms":1,"hold_ms":1,"ceiling":1,` +
		`"hard_ceiling":1,"gen":1,"by":"\u001b[2J"}`
	held := `{"node":"n","nonce":"x","term":1,"lease_until":5`
	for _, s := range []string{held + `,"name":"\u001b[2J","host":"\u202e","state":"\n"}`,
		held + `,"granted":-9223372036854775808,"reported_clock":9223372036854775807}`, "{}", "\x1b"} {
		f.Add([]byte(s), []byte(sequence))
	}
	f.Fuzz(func(t *testing.T, slot, record []byte) {
		w := newSeqWorld(t)
		cl, err := coordinator.PeekCluster(t.Context(), w.store)
		if err != nil {
			t.Fatal(err)
		}
		cl.HighestSlot = 0
		put(t, w.store, "/cluster", cl, false)
		put(t, w.store, "/workers/0000", slot, true)
		for _, path := range []string{"/seq/s", "/seq/s/001", "/seq/s/001/a"} {
			put(t, w.store, path, record, true)
		}
		d, err := health.ReadDraft(t.Context(), w.store, "c")
		if err != nil {
			t.Fatal(err)
		}
		d.ReadSequences(t.Context(), w.store)
		var out bytes.Buffer
		if err := printStatus(&out, d.Complete()); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(out.String(), func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) }) {
			t.Fatalf("%q", out.String())
		}
	})
}
