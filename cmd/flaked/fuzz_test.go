package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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
