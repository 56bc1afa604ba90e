package lineproto

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// tickOf returns a fakeBackend that makes so many IDs, and no more for a while.
func tickOf(n int64) *fakeBackend {
	b := &fakeBackend{maxRun: int(min(n, 1<<20))}
	b.tick = func(asked int) (k int, p worker.Pause) {
		if b.last.Load() >= 999+n {
			p.For = time.Millisecond
		}
		return asked, p
	}
	return b
}

// TestLoopServesOtherRequestsInAPause: while there are no IDs, a loop asks for none. It serves other requests, and
// goes on when its timer expires.
func TestLoopServesOtherRequestsInAPause(t *testing.T) {
	b := tickOf(100)
	f := asleep()
	l, c, client := newTestLoop(t, Config{Backend: b, Sequences: f})
	l.sent(t, c, client, "GET 1000\n", 0)
	l.giveTurns(t.Context())
	late, lateClient := l.connect(t)
	l.sent(t, late, lateClient, "GET\n", 0)
	asks, asksClient := l.connect(t)
	l.sent(t, asks, asksClient, "NEXT slow\nGET 300\n", 0)
	f.wakeAll()
	l.obey(l.collect())
	waits := b.waits.Load()
	l.giveTurns(t.Context())
	out := make([]byte, 64<<10)
	if n, err := unix.Read(asksClient, out); err != nil || string(out[:n]) != "1\n" {
		t.Errorf("%q, %v: the sequence waits for IDs", out[:max(n, 0)], err)
	}
	if n := b.waits.Load(); n > waits {
		t.Errorf("asked for IDs %d times in a pause", n-waits)
	}
	b.tick = nil
	l.endPause()
	l.giveTurns(t.Context())
	for c, client := range map[*loopConn]int{c: client, late: lateClient, asks: asksClient} {
		if n, err := unix.Read(client, out); c.state != connReading || err != nil || out[n-1] != '\n' {
			t.Errorf("state %d, %v: not answered after the pause", c.state, err)
		}
	}
}

// endPause waits for the loop's timer.
func (l *loop) endPause() {
	for l.paused {
		for _, ev := range l.events[:l.wait()] {
			l.paused = l.paused && int(ev.Fd) != l.timerfd
		}
	}
}

// behindBackend has a clock that went back. It waits once for it.
type behindBackend struct {
	fakeBackend
	waited []time.Duration
}

func (b *behindBackend) Try(_ int, waited time.Duration) (run worker.Run, p worker.Pause, err error) {
	if b.waited = append(b.waited, waited); waited == 0 {
		return run, worker.Pause{For: time.Millisecond, Rollback: true}, nil
	}
	return run, p, replies.New(ids.CLOCK, "behind")
}

// TestLoopWaitsForAClockAsItsRuleSays: requests that wait for a clock together have waited for the same time. The next
// one waits anew.
func TestLoopWaitsForAClockAsItsRuleSays(t *testing.T) {
	b, f := &behindBackend{}, asleep()
	l, c, client := newTestLoop(t, Config{Backend: b, Sequences: f})
	other, otherClient := l.connect(t)
	out := make([]byte, 1<<10)
	for range 2 {
		l.sent(t, c, client, "GET\n", 0)
		l.sent(t, other, otherClient, "GET\n", 0)
		l.endPause()
		l.giveTurns(t.Context())
		for _, client := range []int{client, otherClient} {
			if n, err := unix.Read(client, out); err != nil || string(out[:n]) != "-CLOCK behind\n" {
				t.Fatalf("%q, %v", out[:max(n, 0)], err)
			}
		}
	}
	const ms = time.Millisecond
	if want := []time.Duration{0, ms, ms, 0, ms, ms}; !slices.Equal(b.waited, want) {
		t.Errorf("asked with %v, want %v", b.waited, want)
	}

	// Those that wait want many IDs, so no line is before a small request. It joins the wait all the same.
	b.waited = nil
	l.sent(t, c, client, "GET 300\n", 0)
	l.giveTurns(t.Context())
	l.sent(t, other, otherClient, "GET\n", 0)
	if want := []time.Duration{0}; !slices.Equal(b.waited, want) {
		t.Errorf("asked with %v during the wait, want %v", b.waited, want)
	}
	// So does one behind a request for a sequence, which is answered during the wait.
	asks, asksClient := l.connect(t)
	l.sent(t, asks, asksClient, "NEXT slow\nGET\n", 0)
	f.wakeAll()
	l.obey(l.collect())
	l.giveTurns(t.Context())
	if n, err := unix.Read(asksClient, out); err != nil || string(out[:n]) != "1\n" || len(b.waited) > 1 {
		t.Errorf("%q, %v, asked with %v during the wait", out[:max(n, 0)], err, b.waited)
	}
}
