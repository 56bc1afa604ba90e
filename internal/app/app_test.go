package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/localcache"
)

// The wait ends with the error of the first look: at once when the node is closed, and when its time is over.
func TestWaitForTheStateDirectoryEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	started := func() *Node {
		n, err := New(Config{Node: node.Config{Cluster: "default", InMemory: true}, StateDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := started()
	defer first.Close(context.Background())
	next := started()
	why := next.Locked()
	began := time.Now()
	if err := next.Close(t.Context()); err != nil || why == nil || time.Since(began) > 5*time.Second {
		t.Fatalf("closed after %s: %v, because of %v", time.Since(began), err, why)
	}
	late := &Node{log: next.log, rounds: next.rounds, backing: &backing{dir: dir}, ending: t.Context()}
	late.locked.Store(why)
	err := late.awaitLock(2 * lockEvery)
	if e, ok := errors.AsType[*StateDirError](err); !ok || !errors.Is(err, localcache.ErrLocked) || e.Dir != dir {
		t.Error(err)
	}
}
