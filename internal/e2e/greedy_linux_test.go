package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	loadgen "github.com/flaked/flaked/internal/load"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// peakMemory returns the highest resident memory that the process has had, in bytes.
func (p *process) peakMemory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10
		}
	}
	t.Fatalf("no VmHWM in %s", status)
	return 0
}

// fitting returns the attack with no more connections than this process and the node may open. It
// skips the test if they may open too few.
func fitting(t *testing.T, a loadgen.Attack) loadgen.Attack {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	const ours = 500
	if limit.Max < 2000+ours {
		t.Skipf("%d descriptors are too few for a crowd", limit.Max)
	}
	a.Conns = min(a.Conns, int(min(limit.Max, 1<<20))-ours)
	return a
}

// 8,000 clients ask for 10,000 IDs each, which takes a worker twenty seconds. Clients that ask for
// one ID must not wait for them. `make bench` measures their waiting time. The limits here allow
// for a busy machine. A node that answers requests in the order of arrival makes them wait for
// 10 s and more.
//
// This test is not parallel, because other tests would slow down what it measures.
func TestLargeRequestsDoNotDelaySmallOnes(t *testing.T) {
	const longest, mostMemory = 3 * time.Second, 150 << 20
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "3s")
	for _, a := range loadgen.Attacks()[:2] {
		t.Run(a.Name, func(t *testing.T) {
			a := fitting(t, a)
			n := s.started().ready()
			_, addr, err := n.address()
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			attacked := make(chan error, 1)
			go func() {
				attacked <- a.Run(ctx, func(ctx context.Context) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "tcp", addr)
				})
			}()
			others, err := loadgen.Run(t.Context(), loadgen.Config{
				Network: "tcp", Address: addr, Conns: 10, Rate: 200, Check: true, Duration: 8 * time.Second, Timeout: patience,
			})
			stop()
			if err := <-attacked; err != nil {
				t.Fatalf("the attack: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			wait := time.Duration(others.Latency.Max())
			t.Logf("others have waited %s at most, 99%% of them %s; the node took %d MiB; it refused %s requests",
				wait, time.Duration(others.Latency.ValueAtQuantile(99)), n.proc.peakMemory(t)>>20, n.stat("requests_get_busy"))
			if wait > longest || others.ErrorCount() > 0 || others.Unanswered > 0 {
				t.Errorf("others have waited %s, want %s at most; errors %v, %d unanswered", wait, longest, others.Errors, others.Unanswered)
			}
			if c := others.Check; c.Duplicates+c.Backwards > 0 {
				t.Errorf("wrong IDs: %+v", c)
			}
			if memory := n.proc.peakMemory(t); memory > mostMemory {
				t.Errorf("the node took %d MiB, want %d at most", memory>>20, mostMemory>>20)
			}
			if n.stat("requests_get_busy") == "" {
				t.Error("no request was refused: this was no attack")
			}
			n.stop()
		})
	}
}
