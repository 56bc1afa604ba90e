package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompletionAndMan(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string // in what is printed
	}{
		{"bash", []string{"completion", "bash"}, exitOK, "complete -F _flaked flaked"},
		{"zsh", []string{"completion", "zsh"}, exitOK, "#compdef flaked"},
		{"fish", []string{"completion", "fish"}, exitOK, "complete -c flaked"},
		{"no shell", []string{"completion"}, exitUsage, "expected one shell: bash, zsh, fish"},
		{"another shell", []string{"completion", "tcsh"}, exitUsage, "expected one shell:"},
		{"the program's page", []string{"man"}, exitOK, ".TH \"FLAKED\" 1"},
		{"a command's page", []string{"man", "serve"}, exitOK, ".TH \"FLAKED\\-SERVE\" 1"},
		{"a page of nothing", []string{"man", "serv"}, exitUsage, "Did you mean \"serve\"?"},
		{"two pages", []string{"man", "serve", "get"}, exitUsage, "expected one COMMAND"},
		{"all pages", []string{"man", "--dir", dir}, exitOK, ""},
		{"a directory that cannot be", []string{"man", "--dir", filepath.Join(dir, "flaked.1", "x")}, exitFailure, "flaked.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := call(t, "", tc.args...)
			if r.code != tc.code || !strings.Contains(r.stdout+r.stderr, tc.want) {
				t.Errorf("%v: exit code %d, want %d, and %q in: %s%s", tc.args, r.code, tc.code, tc.want, r.stdout, r.stderr)
			}
		})
	}
	if page, err := os.ReadFile(filepath.Join(dir, "flaked-get.1")); err != nil || !strings.HasPrefix(string(page), ".\\\"") {
		t.Errorf("flaked-get.1: %v: %.40s", err, page)
	}
}
