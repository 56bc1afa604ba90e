package e2e

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/faultdisk"
	"github.com/flaked/flaked/internal/zktest"
)

// What a node answers whose bound on the disk has run out: when writing fails,
// and when it takes for ever.
const (
	noDisk   = `-NOTREADY no durable bound: the state directory cannot be written reason=no-durable-bound`
	noAnswer = `-NOTREADY no durable bound: the state directory does not answer reason=no-durable-bound`
)

// diskOfItsOwn is a node that serves, on a disk of its own.
func (s *site) diskOfItsOwn() (*node, *faultdisk.Disk) {
	s.t.Helper()
	disk := faultdisk.New(s.t)
	n := s.node()
	n.dir = filepath.Join(disk.Dir(), "state")
	return n.start().ready(), disk
}

// A disk on which nothing can be made or grow any more: a node that has its
// place serves on, and starts again; one that has none says so.
func TestScenario12DiskFull(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "3s")
	n, disk := s.diskOfItsOwn()
	before := n.identity()
	load := n.clients(2)
	load.progress()
	disk.Fill()
	written := n.stored().Record.MMs
	n.until("its bound has been pushed again and again", func() bool { return n.stored().Record.MMs > written+2000 })
	load.progress()
	load.flawless()
	n.kill()
	n.start().ready().get(100)
	n.stop()
	n.start().ready().get(100)

	newcomer := s.node()
	newcomer.dir = filepath.Join(disk.Dir(), "another")
	newcomer.start().fails(1, `no space left on device`)
	disk.Free()
	newcomer.start().ready().get(100)
	if now := n.identity(); now.worker != before.worker || now.uuid != before.uuid {
		t.Errorf("%+v, was %+v", now, before)
	}
}

// A disk that fails every write: the node serves to its bound, refuses, and
// goes on by itself.
func TestScenario12DiskReadOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n, disk := s.diskOfItsOwn()
	before := n.identity()
	load := n.clients(2)
	for range 3 {
		load.progress()
		disk.ReadOnly()
		n.refusesLike(noDisk)
		n.heartbeats(true)
		disk.ReadWrite()
		n.ready()
	}
	load.progress()
	load.failedOnlyBy(noBound)
	if now := n.identity(); now != before {
		t.Errorf("%+v, was %+v", now, before)
	}

	// A stop that cannot be stored is as good as a crash. Nobody has a file open
	// now, as after a restart of the machine: the disk is what is called read-only.
	disk.ReadOnly()
	n.refusesLike(noDisk)
	n.stop()
	disk.ReadWrite()
	disk.ReadOnly()
	n.start().fails(1, `read-only file system`)
	disk.ReadWrite()
	n.start().ready().get(100)
	if now := n.identity(); now.worker != before.worker || now.uuid != before.uuid {
		t.Errorf("%+v, was %+v", now, before)
	}
}

// A disk on which a sync takes ten seconds: the node serves to its bound,
// refuses, says why, and goes on when the sync is through.
func TestScenario12DiskStalls(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n, disk := s.diskOfItsOwn()
	before := n.identity()
	load := n.clients(2)
	load.progress()
	disk.Freeze()
	stall := time.NewTimer(10 * time.Second)
	bound := n.stored().Record.MMs
	n.refusesLike(noAnswer)
	s.servedTo(before.worker, bound)
	n.heartbeats(true)
	if ok := n.stat("state_directory_ok"); ok != "false" {
		t.Errorf("state_directory_ok is %s of a disk that does not answer", ok)
	}
	<-stall.C
	n.refusesLike(noAnswer)
	s.servedTo(before.worker, bound)
	disk.Thaw()
	n.ready()
	load.progress()
	load.failedOnlyBy(noBound)
	if now := n.identity(); now != before {
		t.Errorf("%+v, was %+v", now, before)
	}
}

// servedTo checks that no ID of a worker is of its bound on the disk or after.
func (s *site) servedTo(worker int, bound int64) {
	s.t.Helper()
	_, last := s.ids.span(worker, 0, s.ids.len())
	if last >= bound {
		s.t.Errorf("an ID is %d ms past the bound on the disk", last-bound)
	}
	s.t.Logf("the last ID is %d ms before the bound on the disk", bound-last)
}

// kill -9 while the disk stalls, and SIGTERM: whatever becomes of the write that
// is under way, the next start is above all that was handed out.
func TestScenario12EndedWhileTheDiskStalls(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n, disk := s.diskOfItsOwn()
	before := n.identity()
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		load := n.clients(2)
		load.progress()
		disk.Freeze()
		bound := n.stored().Record.MMs
		n.refusesLike(noAnswer)
		s.servedTo(before.worker, bound)
		n.proc.signal(end)
		disk.Thaw() // what waits for the disk cannot be killed
		code := n.proc.exit()
		load.end()
		n.start()
		if end == syscall.SIGKILL {
			n.firstAfter(bound)
		} else if code != 0 {
			t.Errorf("exit %d after SIGTERM", code)
		}
		n.ready().get(100)
		if now := n.identity(); now.worker != before.worker || now.uuid != before.uuid {
			t.Errorf("%+v, was %+v", now, before)
		}
	}
}
