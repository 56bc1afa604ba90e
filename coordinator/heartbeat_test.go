package coordinator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// A node that started without ZooKeeper reports its restart, and the write is not acknowledged. It may find its own
// write at the next heartbeat, and must not be fenced by it.
func TestRestartReportIsNotFencedByItself(t *testing.T) {
	for name, fault := range map[string]memzk.Fault{"not applied": memzk.FailBefore,
		"not acknowledged": memzk.FailAfter} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 4)
			a := l.serving("A")
			a.crash()
			l.pass(2*limits.DefaultHeartbeat + time.Millisecond) // a gap
			a.startAlone()
			a.hook = faulty(fault, 0, 2, touching("set", SlotPath(0)))
			for range 2 {
				l.pass(time.Second)
				if _, err := a.beat(); err == nil {
					t.Fatal("acknowledged")
				}
			}
			a.hook = nil
			beat := a.mustBeat()
			if s := l.slot(0); beat.Confirmed || beat.Wait != labConfirm || s.Nonce != a.claim.Nonce || s.Confirmed ||
				a.h.Alone() {
				t.Errorf("%+v, %+v", beat, s)
			}
			a.confirm()
			l.disjoint()
		})
	}
}

// A server that lags behind does not have the node's record yet. A heartbeat must not take that for a loss of data.
func TestHeartbeatThroughALaggingServer(t *testing.T) {
	l := newLab(t, 4)
	early := l.mem.Snapshot()
	a := l.serving("A")
	l.pass(time.Second)
	a.mustBeat()
	a.sess.LagTo(early)
	for range 2 {
		if beat := a.mustBeat(); beat.Restored || beat.FrozenUntil != 0 || l.cluster().FrozenUntil != 0 {
			t.Errorf("%+v", beat)
		}
		l.pass(time.Second)
	}
}

// ZooKeeper denies access to a slot. Heartbeat, Stop and Register return the error, and Register leaves no ticket.
func TestDenied(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	deny := &denying{Store: a.sess, path: SlotPath(0)}
	a.co.Store = deny
	l.pass(time.Second)
	if _, err := a.beat(); !errors.Is(err, store.ErrDenied) || !a.issue() {
		t.Error(err)
	}
	if err := a.h.Stop(t.Context(), a.end(), 1); !errors.Is(err, store.ErrDenied) {
		t.Error(err)
	}
	b := l.node("B")
	b.co.Store = &denying{Store: b.sess, path: SlotPath(1)}
	if err := b.register(); !errors.Is(err, store.ErrDenied) || len(l.children(ticketsPath)) != 1 {
		t.Errorf("%v, %q", err, l.children(ticketsPath))
	}
}

// denying is a Store that denies reads of one path.
type denying struct {
	store.Store
	path string
}

func (d *denying) Get(ctx context.Context, path string) ([]byte, store.Stat, error) {
	if path == d.path {
		return nil, store.Stat{}, store.ErrDenied
	}
	return d.Store.Get(ctx, path)
}

func (d *denying) GetAll(ctx context.Context, paths ...string) ([]store.Record, error) {
	if slices.Contains(paths, d.path) {
		return nil, store.ErrDenied
	}
	return d.Store.GetAll(ctx, paths...)
}
