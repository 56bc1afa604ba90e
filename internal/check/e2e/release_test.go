package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/check/upgrade"
	"github.com/flaked/flaked/internal/testkit/ownclock"
)

// releaseTag is the release that this version must work beside: docs/operate.md. Until the tag exists, the file
// 0.1.0/commit of package upgrade names a commit in its place.
const releaseTag = "v0.1.0"

// release returns a build of the release. It skips the test if this checkout does not have the release's commit.
// TestFrozenRecords does not need it.
func release(t testing.TB) *harness.Build {
	t.Helper()
	commit, err := git("rev-parse", "--verify", "--quiet", releaseTag+"^{commit}")
	if err != nil {
		named, err := os.ReadFile(upgrade.Path(t, "0.1.0/commit"))
		if err != nil {
			t.Fatal(err)
		}
		commit = strings.TrimSpace(string(named))
	}
	if _, err := git("cat-file", "-e", commit+"^{commit}"); err != nil {
		t.Skipf("NOT RUN beside %s: this checkout has no commit %s. Use a clone with the whole history: %v", releaseTag,
			commit, err)
	}
	released.Tree = func() (string, error) { return treeOf(commit) }
	return released
}

// released is package-level because it is built once, like clocked.
var released = &harness.Build{Name: "flaked-released",
	Args: []string{"-tags", ownclock.Tag, "-trimpath", "-ldflags", "-X main.version=" + releaseTag}}

// treeOf writes the files of a commit into a directory beside the builds, and returns it.
func treeOf(commit string) (string, error) {
	dir, err := harness.BuildDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, commit)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	archive := filepath.Join(dir, ".tar")
	if _, err := git("archive", "--output", archive, commit); err != nil {
		return "", err
	}
	if out, err := exec.Command("tar", "-xf", archive, "-C", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpack %s: %w: %s", archive, err, out)
	}
	return dir, nil
}

// git runs git in this checkout, and returns what it prints.
func git(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", docsRoot}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w %s", args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
