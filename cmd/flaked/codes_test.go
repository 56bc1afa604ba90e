package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/replies"
)

const root = "../.."

// A client that gets an error finds its code.
func TestEveryErrorCodeIsDocumented(t *testing.T) {
	protocol := readFile(t, "docs/protocol.md")
	for _, class := range replies.Codes {
		c := class.Code
		if !strings.Contains(protocol, "\n| `-"+string(c)+"` |") {
			t.Errorf("docs/protocol.md has no line for -%s in its table of errors", c)
		}
	}
}

func TestEveryExitCodeIsDocumented(t *testing.T) {
	section := sectionOf(readFile(t, "docs/troubleshooting.md"), "## Exit codes and signals")
	for code := range exitDegraded + 1 {
		if !strings.Contains(appHelp, fmt.Sprintf("\n   %d  ", code)) {
			t.Errorf("the help lacks exit code %d", code)
		}
		if !strings.Contains(section, fmt.Sprintf("\n- **%d**: ", code)) {
			t.Errorf("docs/troubleshooting.md does not say what to do about exit code %d", code)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A column of `flaked status` has a row in the table of docs/operate.md, and a row belongs to columns.
func TestEveryColumnOfStatusIsDocumented(t *testing.T) {
	var rows []string
	_, table, _ := strings.Cut(readFile(t, "docs/operate.md"), "\n| column | meaning |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		names, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		rows = append(rows, strings.Split(names, ", ")...)
	}
	slices.Sort(rows)
	if columns := slices.Sorted(slices.Values(statusHeader)); !slices.Equal(rows, columns) {
		t.Errorf("docs/operate.md has rows for the columns\n%q, but status shows\n%q", rows, columns)
	}
}
