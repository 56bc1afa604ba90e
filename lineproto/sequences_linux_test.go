package lineproto

import (
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/sequence"
)

// A wake that comes while the client does not read is not lost.
func TestLoopRemembersAWake(t *testing.T) {
	f := asleep()
	l, c, client := newTestLoop(t, Config{Sequences: f})
	if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<10); err != nil {
		t.Fatal(err)
	}
	l.sent(t, c, client, strings.Repeat("PING "+x512[:500]+"\n", 30)+"NEXT slow\nPING\n", 0)
	if c.state != connWriting || f.waiting() != 1 {
		t.Fatalf("state %d, %d wait", c.state, f.waiting())
	}
	f.wakeAll()
	l.obey(l.collect())
	var got strings.Builder
	out := make([]byte, 64<<10)
	for c.state != connReading {
		if n, err := unix.Read(client, out); err == nil {
			got.Write(out[:n])
		}
		switch c.state {
		case connWriting:
			l.ready(t.Context(), c, unix.EPOLLOUT)
		case connQueued:
			l.giveTurns(t.Context())
		case connSleeping:
			t.Fatal("it sleeps although it was woken")
		}
	}
	n, _ := unix.Read(client, out)
	got.Write(out[:max(n, 0)])
	if !strings.HasSuffix(got.String(), "x\n1\nPONG\n") || c.want != awaitInput {
		t.Errorf("%q", got.String()[got.Len()-40:])
	}
}

// A connection that sleeps is not read, has no output buffer, and is closed when it is lost.
func TestLoopWatchesSleepingConnections(t *testing.T) {
	f := asleep()
	l, c, client := newTestLoop(t, Config{Sequences: f})
	expect := func(what string, state connState, want uint32) {
		t.Helper()
		if c.state != state || c.want != want || c.s.buf != nil || c.place.in != nil {
			t.Fatalf("%s: state %d, asks for %#x", what, c.state, c.want)
		}
	}
	l.sent(t, c, client, "PING\nNEXT slow\nPING\n", 0)
	expect("asleep", connSleeping, awaitInput)
	l.sent(t, c, client, "PING\n", 0)
	expect("with more input", connSleeping, awaitEnd)
	l.ready(t.Context(), c, unix.EPOLLRDHUP)
	expect("half closed", connSleeping, awaitLoss)
	c.due = 0
	l.obey(mail{sweep: true})
	l.sweep()
	expect("overdue", connSleeping, awaitLoss)
	l.ready(t.Context(), c, unix.EPOLLHUP)
	expect("gone", connClosed, awaitLoss)
	f.wakeAll()
	l.obey(l.collect())
	expect("woken too late", connClosed, awaitLoss)
}

// A wake that comes before the connection sleeps, or for a request that is answered, does
// not make it miss the next one.
func TestLoopEarlyAndStrayWakes(t *testing.T) {
	f := newFakeSequences()
	f.pends = func(w *sequence.Wait, _ []byte) bool { return w.Since < 2 }
	f.later = func(wake func()) { wake(); wake() } // during the call
	l, c, client := newTestLoop(t, Config{Sequences: f})
	out := make([]byte, 1<<10)
	for _, want := range []string{"1\n", "2\n", "3\n"} {
		l.sent(t, c, client, "NEXT order\n", 0)
		for c.state != connReading {
			if c.state == connSleeping {
				t.Fatal("it sleeps although it was woken")
			}
			l.giveTurns(t.Context())
		}
		l.obey(l.collect()) // wakes that are too late
		if n, err := unix.Read(client, out); err != nil || string(out[:n]) != want {
			t.Fatalf("%q, %v, want %q", out[:max(n, 0)], err, want)
		}
	}
}

// A wake after the end of its loop writes to no descriptor: another file may have the number
// of the loop's eventfd by then.
func TestLoopWakeAfterTheEnd(t *testing.T) {
	f := asleep()
	l, c, client := newTestLoop(t, Config{Sequences: f})
	l.sent(t, c, client, "NEXT slow\n", 0)
	wakefd := l.wakefd
	l.close(c)
	l.free()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if fd != wakefd {
		if err := unix.Dup3(fd, wakefd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(wakefd)
	}
	f.wakeAll()
	if n, err := unix.Read(fd, make([]byte, 8)); err != unix.EAGAIN {
		t.Errorf("the wake wrote to the descriptor: %d, %v", n, err)
	}
}

// Each wake adds 1 to the counter of the eventfd, which nobody empties: it must never be full.
// A byte order that is not the processor's would add 2^56.
func TestLoopWakeAddsOne(t *testing.T) {
	l, _, _ := newTestLoop(t, Config{})
	const wakes = 300
	for range wakes {
		l.collect()
		l.post(func(*mail) {})
	}
	counter := make([]byte, 8)
	if _, err := unix.Read(l.wakefd, counter); err != nil {
		t.Fatal(err)
	}
	if n := binary.NativeEndian.Uint64(counter); n != wakes {
		t.Errorf("%d wakes counted %d", wakes, n)
	}
}

// A connection that is woken and must wait again sleeps again, and is not served until the
// next wake.
func TestLoopSleepsAgain(t *testing.T) {
	f := asleep()
	l, c, client := newTestLoop(t, Config{Sequences: f})
	l.sent(t, c, client, "NEXT slow\n", 0)
	for calls := 2; calls < 5; calls++ {
		f.wakes[len(f.wakes)-1]()
		l.obey(l.collect())
		for range 3 {
			l.giveTurns(t.Context())
		}
		if f.calls != calls || c.state != connSleeping {
			t.Fatalf("state %d after %d calls, want %d", c.state, f.calls, calls)
		}
	}
}

// A request that would wait when the server no longer waits gets NOTREADY at once.
func TestLoopRefusesLateWaits(t *testing.T) {
	l, c, client := newTestLoop(t, Config{Sequences: asleep()})
	l.stage = stageWaitless
	l.sent(t, c, client, "NEXT slow\nNEXT order\n", 0)
	l.giveTurns(t.Context())
	out := make([]byte, 1<<10)
	if n, err := unix.Read(client, out); err != nil || string(out[:n]) != "-NOTREADY stopping\n1\n" {
		t.Errorf("%q, %v", out[:max(n, 0)], err)
	}
}

// A request that was woken before the server stops gets its answer: the values are taken already.
func TestLoopAnswersWhatWasWokenBeforeTheEnd(t *testing.T) {
	f := asleep()
	l, c, client := newTestLoop(t, Config{Sequences: f})
	l.sent(t, c, client, "NEXT slow\n", 0)
	f.wakeAll()
	l.obey(mail{stage: stageWaitless})
	l.giveTurns(t.Context())
	out := make([]byte, 1<<10)
	if n, err := unix.Read(client, out); err != nil || string(out[:n]) != "1\n" {
		t.Errorf("%q, %v", out[:max(n, 0)], err)
	}
}
