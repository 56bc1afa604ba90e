package load

import (
	"bufio"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Every attack opens its connections, sends requests and ends when its context ends.
func TestAttacks(t *testing.T) {
	for _, a := range Attacks() {
		a.Conns = min(a.Conns, 5)
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			s := serve(t, "tcp", func(s *server, conn int64, line string, w *bufio.Writer) bool {
				asked.Add(1)
				return line+"\n" == greedy && says("-BUSY later\n")(s, conn, line, w)
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				ended <- a.Run(ctx, func(ctx context.Context) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "tcp", s.Addr().String())
				})
			}()
			deadline := time.After(10 * time.Second)
			for asked.Load() < int64(a.Conns) || s.conns.Load() < int64(a.Conns) {
				select {
				case <-deadline:
					t.Fatalf("%d requests on %d connections", asked.Load(), s.conns.Load())
				case <-time.After(time.Millisecond):
				}
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// An attack without a node returns an error.
func TestAttackFailsWithoutANode(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, a := range Attacks() {
		err := a.Run(t.Context(), func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		})
		if err == nil {
			t.Errorf("%s: no error", a.Name)
		}
	}
}

// Clients that are refused do not take the refusal for IDs.
func TestReadReply(t *testing.T) {
	for _, row := range []struct {
		name, reply string
		busy, fails bool
	}{
		{"refused", "-BUSY later\n", true, false},
		{"all of it", strings.Repeat("1\n", 10_000), false, false},
		{"cut short", strings.Repeat("1\n", 9_999), false, true},
	} {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Write([]byte(row.reply))
			theirs.Close()
		}()
		busy, err := readReply(ours, make([]byte, 4096))
		if busy != row.busy || (err != nil) != row.fails {
			t.Errorf("%s: %v, %v", row.name, busy, err)
		}
		ours.Close()
	}
}
