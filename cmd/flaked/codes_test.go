package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/replies"
)

const root = "../.."

// TestTroubleshootingHasEveryErrorOfClients checks that docs/troubleshooting.md has them, too.
func TestEveryErrorCodeIsDocumented(t *testing.T) {
	protocol := readFile(t, "docs/protocol.md")
	for _, c := range replies.Codes {
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
		if !strings.Contains(section, fmt.Sprintf("\n| %d | ", code)) {
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
