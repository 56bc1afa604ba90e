package lineproto

import (
	"strings"
	"testing"
	"time"
)

// TestUnreadRepliesAreBounded: for a client that does not read, the server makes few
// IDs, because neither it nor the kernel keeps much output.
func TestUnreadRepliesAreBounded(t *testing.T) {
	limitWires(t, func(t *testing.T, w wire) {
		// IDs have 19 digits, as in production: 20 bytes a line.
		b := &fakeBackend{maxRun: 4096}
		b.last.Store(1_234_567_890_123_000_000)
		r := w.serve(t, Config{Backend: b, WriteTimeout: 100 * time.Millisecond})
		c := r.dial(t)
		c.SetReadBuffer(4 << 10)
		c.send(strings.Repeat("GET 1000\n", 1000))
		until(t, "it is closed", func() bool { return r.Counters().ConnsSlow > 0 })
		if n := 20 * r.Counters().IDs; n > 1<<20 {
			t.Errorf("%d bytes were made for a client that does not read", n)
		}
	})
}
