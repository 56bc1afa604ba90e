package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// A removed command or flag says on one line what to use instead. A row never hides what still exists.
func TestRemovedSaysWhatToUseInstead(t *testing.T) {
	commands, flags := map[string]bool{}, map[string]bool{}
	walk(newApp(nil, nil, nil).Commands, "flaked", func(path string, c *cli.Command) {
		path = strings.TrimPrefix(path, "flaked ")
		commands[path] = true
		for _, f := range c.Flags {
			flags[path+" --"+f.Names()[0]], flags[f.Names()[0]] = true, true
		}
	})
	for key, instead := range removed {
		if commands[key] || flags[key] {
			continue
		}
		r := call(t, "", strings.Fields(key)...)
		r.wants(t, exitUsage, "", "was removed: "+instead)
		if strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: not one line: %q", key, r.stderr)
		}
		_, flag, is := strings.Cut(key, "serve --")
		if !is || flags[flag] {
			continue
		}
		t.Setenv(envName(flag), "1")
		call(t, "", "serve", "--dev").wants(t, exitUsage, "", envName(flag))
		os.Unsetenv(envName(flag))
		file := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(file, []byte(flag+": 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		call(t, "", "serve", "--dev", "--config", file).wants(t, exitUsage, "", "--"+flag+" was removed: "+instead)
	}
}
