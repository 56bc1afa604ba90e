package main

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flaked/flaked/ids"
)

const root = "../.."

// TestTroubleshootingHasEveryErrorOfClients checks that docs/troubleshooting.md has them, too.
func TestEveryErrorCodeIsDocumented(t *testing.T) {
	protocol := readFile(t, "docs/protocol.md")
	for _, c := range ids.Codes {
		if !strings.Contains(protocol, "\n| `-"+string(c)+"` |") {
			t.Errorf("docs/protocol.md has no line for -%s in its table of errors", c)
		}
	}
}

func TestHelpHasEveryExitCode(t *testing.T) {
	codes := exitConstants(t)
	if len(codes) < 5 {
		t.Fatalf("exit.go has %v: is it where the exit codes are?", codes)
	}
	for name, code := range codes {
		if !strings.Contains(appHelp, "\n   "+code+"  ") {
			t.Errorf("the help lacks exit code %s (%s)", code, name)
		}
	}
}

// exitConstants returns the values of the constants of exit.go called exit..., by their names.
func exitConstants(t *testing.T) map[string]string {
	t.Helper()
	codes := map[string]string{}
	ast.Inspect(parseGo(t, "exit.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "exit") {
			if value, ok := spec.Values[0].(*ast.BasicLit); ok {
				codes[spec.Names[0].Name] = value.Value
			}
		}
		return true
	})
	return codes
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
