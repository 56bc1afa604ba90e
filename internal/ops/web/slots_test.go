package web

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flaked/flaked/internal/ops/health"
)

func TestWorkers(t *testing.T) {
	var err error
	addr, _ := start(t, Config{Slots: func(context.Context) (health.Report, error) {
		return health.Report{Source: health.SourceZooKeeper, Summary: health.Summary{Slots: 4}}, err
	}})
	for range 2 { // the second is from memory
		if code, _, body := do(t, "GET", "http://"+addr+"/v1/workers"); code != 200 ||
			!strings.HasPrefix(body, `{"source":"zookeeper","zookeeper_error":"","cluster":{`) ||
			!strings.Contains(body, `"summary":{"slots":4,`) {
			t.Errorf("%d %s", code, body)
		}
	}
	err = errors.New("ZooKeeper\nis away")
	addr, _ = start(t, Config{Slots: func(context.Context) (health.Report, error) { return health.Report{}, err }})
	want := `{"error":{"code":"UNREACHABLE","text":"ZooKeeper is away"},"last":null}`
	if code, _, body := do(t, "GET", "http://"+addr+"/v1/workers"); code != 503 || strings.TrimSpace(body) != want {
		t.Errorf("%d %s, want 503 %s", code, body, want)
	}
}

// The slots are read only on request, at most every 15 s, and less often in a large cluster.
func TestSlotReadsAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, size := 0, 3
		var fail error
		c := newSlots(func(context.Context) (health.Report, error) {
			reads++
			return health.Report{Summary: health.Summary{NowMs: int64(reads), Used: size, Live: size}}, fail
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		if s, _ := c.get(false); s.Summary.NowMs != 0 || !s.at.IsZero() {
			t.Errorf("before the first reading: %+v", s)
		}
		go func() { defer close(done); c.run(ctx) }()
		look := func(after time.Duration, want int) seen {
			t.Helper()
			time.Sleep(after)
			c.get(false)
			synctest.Wait()
			s, _ := c.get(false)
			if reads != want {
				t.Errorf("after %v more: %d readings, want %d", after, reads, want)
			}
			return s
		}
		look(0, 1)
		look(14*time.Second, 1)
		look(2*time.Second, 2)
		time.Sleep(time.Hour) // no requests
		size = 1000
		look(0, 3)
		look(199*time.Second, 3)
		fail = errors.New("away")
		if s := look(2*time.Second, 4); s.Summary.NowMs != 3 || s.err == nil || s.ok != 3 || s.failed != 1 {
			t.Errorf("away: %+v", s)
		}
		look(4*time.Second, 4)
		fail = nil
		if s := look(2*time.Second, 5); s.Summary.NowMs != 5 || s.err != nil {
			t.Errorf("back: %+v", s)
		}
		cancel()
		<-done
	})
}

// Requests about this node are answered while ZooKeeper does not answer.
func TestScrapesDoNotWait(t *testing.T) {
	asked := make(chan struct{})
	addr, stop := start(t, Config{Slots: func(ctx context.Context) (health.Report, error) {
		close(asked)
		<-ctx.Done()
		return health.Report{}, ctx.Err()
	}})
	for range 3 {
		scrape(t, addr)
	}
	<-asked
	for _, path := range []string{"/livez", "/readyz?verbose", "/metrics", "/v1/status"} {
		if code, _, _ := do(t, "GET", "http://"+addr+path); code != 200 {
			t.Errorf("%s: %d", path, code)
		}
	}
	stop() // does not wait for ZooKeeper
}
