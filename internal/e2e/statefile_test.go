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

// An old copy of the state is written back into the same file. ZooKeeper's record shows that it is
// old: by the term, or by the generation if the terms are equal.
func TestOldStateIsNotResumed(t *testing.T) {
	t.Parallel()
	ens := zktest.Shared(t)
	network := newNetwork(t, ens.Addr())
	_, chroot, _ := cutChroot(zktest.Chroot(t, ens))
	s := newSite(t, network.Addr()+chroot)
	records := s.records()
	for _, row := range []struct{ alone, restarted bool }{{false, true}, {true, true}, {false, false}, {true, false}} {
		n := s.started().ready()
		before := n.identity()
		old, err := os.ReadFile(n.stateFile())
		if err != nil {
			t.Fatal(err)
		}
		copied := n.writes() // the copy's generation, or a later one
		if row.restarted {
			n.stop()
			n.start().ready()
		}
		n.get(1000)
		n.until("ZooKeeper has seen a later generation", func() bool { return records.slot(before.worker).Generation > copied })
		n.kill()
		if err := os.WriteFile(n.stateFile(), old, 0o600); err != nil { // the same inode
			t.Fatal(err)
		}
		if row.alone {
			network.Cut()
		}
		n.start().ready().get(1000)
		network.Heal()
		n.until("it has registered as a new one", func() bool {
			id, err := n.tryIdentity()
			return err == nil && id.uuid != before.uuid && id.state == "serving"
		})
		if w := n.worker(); w == before.worker {
			t.Errorf("%+v: worker %d again", row, w)
		}
		n.get(1000)
		n.stop()
	}
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

func TestStateOfAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.started().ready()
	before := n.identity()
	n.get(100)
	n.stop()
	stored := n.stored()

	// First a cluster with another name, then one of the same name in another chroot.
	n.flags = append(n.flags, "--cluster", "other")
	n.start().fails(1, `the state directory belongs to cluster "default", but the node was started in cluster "other"\. Give this cluster its own --state-dir`)
	n.flags = n.flags[:len(n.flags)-2]

	elsewhere := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	elsewhere.started().ready().get(1)
	n.connect = elsewhere.connect
	n.start().fails(1, `the state directory belongs to cluster [0-9a-f-]{36}, .*Give this cluster its own --state-dir`)
	n.connect = s.connect

	// A confirmed cluster of another UUID ends the lease in the state, so that the node does not
	// start without ZooKeeper any more. Its identity and its reserved bound stay.
	want := *stored.Record
	want.Confirmed, want.HMs, want.Stopped = false, 0, false
	if now := n.stored(); *now.Record != want {
		t.Errorf("after the refusals the state is %+v, was %+v", *now.Record, *stored.Record)
	}
	if now := n.start().ready().identity(); now.worker != before.worker || now.uuid != before.uuid {
		t.Errorf("%+v in its own cluster again, %+v before", now, before)
	}
	n.get(100)
}
