package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

func (n *node) stateFile() string { return filepath.Join(n.dir, "flaked.state") }

// copied returns a new node with a copy of this node's state directory.
func (n *node) copied() *node {
	t := n.site.t
	t.Helper()
	twin := n.site.node()
	if err := os.CopyFS(twin.dir, os.DirFS(n.dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(twin.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return twin
}

// A copied state directory is never resumed, whether the original runs, is stopped or was killed.
func TestCopiedStateIsNotResumed(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.started().ready()
	before := n.identity()
	check := func(twin *node) {
		t.Helper()
		if changed := twin.stored().Changed; len(changed) == 0 {
			t.Error("state show takes the copy for the original")
		}
		twin.start().ready().get(100)
		if id := twin.identity(); id.worker == before.worker || id.uuid == before.uuid {
			t.Errorf("the copy is %+v, its original %+v", id, before)
		}
	}
	load := n.clients(1)
	load.progress()
	check(n.copied())
	load.progress()
	load.flawless()
	n.stop()
	check(n.copied())
	n.start().ready().get(100)
	n.kill()
	check(n.copied())
	n.start().ready().get(100)
	n.stop()
	// A directory that is renamed has the same file, so the node resumes.
	moved := filepath.Join(filepath.Dir(n.dir), "elsewhere")
	if err := os.Rename(n.dir, moved); err != nil {
		t.Fatal(err)
	}
	n.dir = moved
	if now := n.start().ready().identity(); now.worker != before.worker || now.uuid != before.uuid {
		t.Errorf("%+v after it was moved, %+v before", now, before)
	}
	n.get(100)
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.started().ready()
	load := n.clients(1)
	second := s.node()
	second.dir = n.dir
	for range 3 {
		second.start().fails(1, fmt.Sprintf(`in use: another flaked \(process %d\) uses %s, but each node needs its own state directory`, n.proc.cmd.Process.Pid, n.dir))
	}
	load.progress()
	load.flawless()
	n.kill()
	// The lock ends with the process that holds it.
	second.start().ready().get(100)
	n.start().fails(1, `in use: another flaked`)
}
