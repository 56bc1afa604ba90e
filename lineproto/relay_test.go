package lineproto

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// The relay gives the turn to one waiter at a time, in the order of turns.
func TestRelayHandsOnTheTurnInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r relay
		var first place[chan struct{}]
		if may, err := r.take(t.Context(), &first, 5000, large); may != maxSlice || err != nil {
			t.Fatal(may, err)
		}
		if r.atOnce(1) != 0 {
			t.Error("while IDs are scarce, a request overtakes the holder of the turn")
		}
		order := make(chan string)
		wait := func(name string, lacks int, k rank) {
			go func() {
				var p place[chan struct{}]
				if _, err := r.take(t.Context(), &p, lacks, k); err != nil {
					t.Error(err)
				}
				order <- name
			}()
			synctest.Wait()
		}
		wait("a large order", 5000, large)
		wait("another", 5000, large)
		wait("a tiny one", 1, tiny)
		for _, want := range []string{"a tiny one", "a large order", "another"} {
			select {
			case got := <-order:
				t.Fatalf("%s does not wait", got)
			default:
			}
			r.pass(1)
			if got := <-order; got != want {
				t.Fatalf("%s is next, want %s", got, want)
			}
			synctest.Wait()
		}
		if r.pass(1); r.taken || r.atOnce(1) != maxSlice {
			t.Error("the turn is not free at the end")
		}
	})
}

// While IDs are plenty, no request waits for the holder of the turn.
func TestRelayDelaysNobodyWhileIDsArePlenty(t *testing.T) {
	var r relay
	var p place[chan struct{}]
	if r.take(t.Context(), &p, 5000, large); r.atOnce(0) != maxSlice {
		t.Error("a request waits")
	}
	if r.pass(1); r.atOnce(0) != maxSlice {
		t.Error("a request waits for nobody")
	}
	if first := r.atOnce(1); first != tinyOrder || r.atOnce(1) != tinyOrder {
		t.Error("a large request takes no turn, while others wait for a tick")
	}
	r.take(t.Context(), &p, 5000, large)
	if r.pass(1); r.atOnce(1) != maxSlice {
		t.Error("IDs are scarce although nobody has waited since")
	}
}

// A waiter that is cancelled just as it gets the turn hands the turn on.
func TestCancelledWaiterHandsOnTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r relay
		var first, gone, last place[chan struct{}]
		if _, err := r.take(t.Context(), &first, 5000, large); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		wait := func(ctx context.Context, p *place[chan struct{}]) {
			go func() {
				_, err := r.take(ctx, p, 5000, large)
				done <- err
			}()
			synctest.Wait()
		}
		wait(ctx, &gone)
		wait(t.Context(), &last)
		r.mu.Lock()
		cancel()
		r.handOn()
		r.mu.Unlock()
		synctest.Wait()
		if len(done) != 2 {
			t.Fatalf("%d of 2 have come to an end", len(done))
		}
		if a, b := <-done, <-done; a == b || a != nil && b != nil {
			t.Errorf("%v and %v, want that one has the turn", a, b)
		}
	})
}

// Server.Reserve takes turns with the connections.
func TestReserveTakesTurns(t *testing.T) {
	b := &fakeBackend{maxRun: 4096}
	s := newTestServer(t, Config{Backend: b})
	if run, err := s.Reserve(t.Context(), 10_000); err != nil || run.Len != maxSlice || run.First != 1000 {
		t.Errorf("%+v, %v", run, err)
	}
	if run, err := s.Reserve(t.Context(), 5); err != nil || run.Len != 5 || s.relay.taken {
		t.Errorf("%+v, %v", run, err)
	}
	var p place[chan struct{}]
	if _, err := s.relay.take(t.Context(), &p, 5000, large); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if run, err := s.Reserve(ctx, 10_000); replies.Of(err).Code != ids.BUSY {
		t.Errorf("%+v, %v, want BUSY: somebody else has the turn", run, err)
	}
	s.relay.pass(1)
	b.reserve = func(context.Context, int) error { return replies.New(ids.FENCED, "lease lost") }
	if _, err := s.Reserve(t.Context(), 10_000); err == nil || s.relay.taken {
		t.Errorf("%v, taken %v", err, s.relay.taken)
	}
}
