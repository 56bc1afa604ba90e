package flaked

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// A node that cannot go on ends by itself, and says why.
func TestNodeThatEndsByItself(t *testing.T) {
	noLeaks(t)
	cfg := quick(t, "127.0.0.1:1")
	cfg.StartTimeout = 300 * time.Millisecond
	n, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Next(t.Context()); !errors.Is(err, ids.ErrUnavailable) {
		t.Errorf("a node that starts: %v", err)
	}
	<-n.Done()
	_, err = n.Next(t.Context())
	closed := n.Close(t.Context())
	if closed == nil || errors.Is(closed, ids.ErrClosed) || !errors.Is(err, ids.ErrUnavailable) ||
		!errors.Is(err, closed) {
		t.Errorf("Next: %v, Close: %v", err, closed)
	}
}

func TestClose(t *testing.T) {
	noLeaks(t)
	n := opened(t, Config{InMemory: true})
	stop := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			if _, err := n.Take(context.Background(), 100_000); err != nil {
				if !errors.Is(err, ids.ErrClosed) {
					t.Errorf("a call that Close interrupts: %v", err)
				}
				close(stop)
				return
			}
		}
	})
	for range 2 {
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	<-stop
	asking.Wait()
	if _, err := n.Next(t.Context()); err != ids.ErrClosed {
		t.Errorf("Next: %v", err)
	}
	if _, err := n.Sequence("order").Next(t.Context()); !errors.Is(err, ids.ErrClosed) {
		t.Errorf("a sequence: %v", err)
	}
	if err := n.Ready(); err != ids.ErrClosed {
		t.Errorf("Ready: %v", err)
	}
}

// Close with a context that is done does not wait for a ZooKeeper that is silent, and leaves no
// goroutine.
func TestCloseIsCutShort(t *testing.T) {
	noLeaks(t)
	zk := zktest.Chroot(t, zktest.Shared(t))
	server, chroot, _ := strings.Cut(zk, "/")
	link, err := faultnet.New(server)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	cfg := quick(t, link.Addr()+"/"+chroot)
	n, err := Open(within(t, time.Minute), cfg)
	if err != nil {
		t.Fatal(err)
	}
	create(t, n, record.Segment, "order")
	if _, err := n.Sequence("order").Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	link.BlackHole()
	waiting := make(chan error, 1)
	go func() {
		_, err := n.Sequence("other").Next(context.Background())
		waiting <- err
	}()
	began := time.Now()
	if err := n.Close(within(t, 100*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("Close took %s", took)
	}
	if err := <-waiting; !errors.Is(err, ids.ErrClosed) && !errors.Is(err, ids.ErrUnavailable) {
		t.Errorf("a call that waited: %v", err)
	}
	link.Heal()
	if _, err := opened(t, cfg).Next(t.Context()); err != nil {
		t.Error(err)
	}
}

// A node without a state directory gives its worker back, so that the next one has a worker at
// once, and leaves nothing on the disk.
func TestNodeWithoutADisk(t *testing.T) {
	noLeaks(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	cfg := quick(t, zktest.Chroot(t, zktest.Shared(t)))
	cfg.StateDir = ""
	for range 3 {
		n := opened(t, cfg)
		if _, err := n.Next(t.Context()); err != nil {
			t.Error(err)
		}
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	watcher := opened(t, quick(t, cfg.ZooKeeper))
	if _, held := workers(t, watcher); held != 1 {
		t.Errorf("%d workers are held", held)
	}
}

// An Open that is cut while its worker is confirmed releases the worker, if no state directory keeps it.
func TestOpenThatIsCutReleasesItsWorker(t *testing.T) {
	noLeaks(t)
	cfg := quick(t, zktest.Chroot(t, zktest.Shared(t)))
	cut := cfg
	cut.StateDir = ""
	for range 3 { // each of them waits for the confirming time
		if n, err := Open(within(t, 400*time.Millisecond), cut); err == nil {
			t.Error("the node did not confirm its worker")
			_ = n.Close(t.Context())
		}
	}
	if live, held := workers(t, opened(t, cfg)); live != 1 || held != 1 {
		t.Errorf("%d live workers, %d held", live, held)
	}
}

// A node keeps the directories that relative paths meant at its start.
func TestProgramChangesItsDirectory(t *testing.T) {
	noLeaks(t)
	zk, elsewhere := zktest.Chroot(t, zktest.Shared(t)), t.TempDir()
	for _, lasting := range []bool{true, false} {
		began := t.TempDir()
		t.Chdir(began)
		t.Setenv("TMPDIR", ".")
		cfg := quick(t, zk)
		cfg.StateDir, cfg.ReleaseOnClose = "", true
		if lasting {
			cfg.StateDir = "state"
		}
		n := opened(t, cfg)
		t.Chdir(elsewhere)
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
		// A node that releases its worker deletes its state file.
		if left, _ := filepath.Glob(filepath.Join(began, "*", "flaked.state")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if made, err := os.ReadDir(elsewhere); err != nil || len(made) > 0 {
			t.Errorf("made in the other directory: %v, %v", made, err)
		}
	}
}

func TestDrainedNodeIsNotReadyAndGivesIDs(t *testing.T) {
	noLeaks(t)
	n := opened(t, Config{InMemory: true})
	if err := n.Ready(); err != nil {
		t.Fatal(err)
	}
	n.Drain(false)
	if e, ok := errors.AsType[*ids.ReplyError](n.Ready()); !ok || !strings.HasPrefix(e.Text, "draining") {
		t.Errorf("Ready: %v", n.Ready())
	}
	if _, err := n.Next(t.Context()); err != nil {
		t.Error(err)
	}
	if err := n.Live(); err != nil {
		t.Error(err)
	}
}
