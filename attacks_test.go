package flaked

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/worker"
)

// Programs open, use, drain and close nodes all the time, on state directories that others may
// have open, with deadlines that are too short, while ZooKeeper falls silent and comes back. No ID
// is issued twice, and no goroutine is left. A longer run has more histories: change attackFor.
func TestOpenAndCloseUnderAttack(t *testing.T) {
	noLeaks(t)
	const attackFor = 6 * time.Second
	server, chroot, _ := strings.Cut(zktest.Chroot(t, zktest.Shared(t)), "/")
	link, err := faultnet.New(server)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	a := &attack{t: t, base: quick(t, link.Addr()+"/"+chroot), dirs: t.TempDir(), issued: map[worker.ID]bool{}}
	ctx, cancel := context.WithTimeout(t.Context(), attackFor)
	defer cancel()
	var attackers sync.WaitGroup
	for range 8 {
		attackers.Go(func() {
			for ctx.Err() == nil || !a.succeeded() {
				a.program()
			}
		})
	}
	attackers.Go(func() {
		for ctx.Err() == nil {
			pause(2 * time.Second)
			link.BlackHole()
			pause(time.Second)
			link.Heal()
		}
	})
	attackers.Wait()
	t.Logf("%d nodes opened, %d refused, %d IDs", a.opened, a.refused, len(a.issued))
}

// pause waits for a random time below d. These pauses choose histories. No test result waits for them.
func pause(d time.Duration) { time.Sleep(rand.N(d)) }

type attack struct {
	t    *testing.T
	base Config
	dirs string

	mu              sync.Mutex // guards what follows
	issued          map[worker.ID]bool
	opened, refused int
}

// succeeded reports whether a node has given IDs.
func (a *attack) succeeded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.issued) > 0
}

// program opens a node, uses it and closes it.
func (a *attack) program() {
	cfg := a.base
	cfg.StateDir, cfg.ReleaseOnClose = "", rand.N(4) == 0
	if rand.N(4) > 0 {
		cfg.StateDir = filepath.Join(a.dirs, fmt.Sprint(rand.N(4)))
	}
	ctx, cancel := context.WithTimeout(a.t.Context(), rand.N(3*time.Second))
	defer cancel()
	n, err := Open(ctx, cfg)
	a.mu.Lock()
	if err != nil {
		a.refused++
	} else {
		a.opened++
	}
	a.mu.Unlock()
	if err != nil {
		return
	}
	var using sync.WaitGroup
	for range 3 {
		using.Go(func() { a.use(n) })
	}
	if rand.N(3) == 0 {
		using.Go(func() { n.Drain(rand.N(2) == 0) })
	}
	pause(400 * time.Millisecond)
	for range 3 {
		using.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), rand.N(300*time.Millisecond))
			defer cancel()
			_ = n.Close(ctx) // the error of the context, or nil
		})
	}
	using.Wait()
	select {
	case <-n.Done():
	default:
		a.t.Error("Close has returned, and the node goes on")
	}
}

// use draws IDs, some of them while the node closes.
func (a *attack) use(n *Node) {
	for range 200 {
		got, _ := n.Take(context.Background(), 1+rand.N(50))
		if id, err := n.Next(context.Background()); err == nil {
			got = append(got, id)
		}
		a.mu.Lock()
		for _, id := range got {
			if a.issued[id] {
				a.t.Errorf("ID %d was issued twice", id)
			}
			a.issued[id] = true
		}
		a.mu.Unlock()
	}
}
