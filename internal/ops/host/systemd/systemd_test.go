package systemd

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestRunSendsOnlyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// mu guards the variables below. The clock of a synctest bubble does not order
		// memory accesses for the race detector.
		var mu sync.Mutex
		ready, status, stuck := false, "starting", error(nil)
		var told []string
		var failing error
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Run(ctx, Config{
				Look:   func() (bool, string) { mu.Lock(); defer mu.Unlock(); return ready, status },
				Live:   func() error { mu.Lock(); defer mu.Unlock(); return stuck },
				Logger: hclog.NewNullLogger(),
				notify: func(m string) (bool, error) {
					mu.Lock()
					defer mu.Unlock()
					if failing == nil {
						told = append(told, m)
					}
					return true, failing
				},
				watchdog: func() (time.Duration, error) { return 4 * time.Second, nil },
			})
		}()
		// next checks the messages sent since the call before.
		next := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(told, want) {
				t.Errorf("%s: told %q, want %q", what, told, want)
			}
			told = nil
		}
		now := func(change func()) { mu.Lock(); defer mu.Unlock(); change() }
		const alive, patience = "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=30000000"
		next("at first", "STATUS=starting\n"+alive+"\n"+patience)
		time.Sleep(time.Second)
		next("no news", alive+"\n"+patience)
		now(func() { ready, status = true, "serving\nworker 7" })
		time.Sleep(time.Second)
		next("it serves", "READY=1\nSTATUS=serving worker 7\n"+alive)
		time.Sleep(2 * time.Second)
		next("no news", alive, alive)
		now(func() { ready, status = false, "refusing" })
		time.Sleep(time.Second)
		next("it refuses", "STATUS=refusing\n"+alive)
		now(func() { stuck = errors.New("a loop does not turn") })
		time.Sleep(3 * time.Second)
		next("it is stuck")
		now(func() { stuck, status, ready = nil, "serving worker 7", true })
		time.Sleep(time.Second)
		next("it goes on", "STATUS=serving worker 7\n"+alive)
		now(func() { failing, status = errors.New("connection refused"), "serving worker 8" })
		time.Sleep(2 * time.Second)
		next("nobody hears")
		now(func() { failing = nil })
		time.Sleep(time.Second)
		next("what was not heard", "STATUS=serving worker 8\n"+alive)
		cancel()
		<-ended
		next("it stops", "STOPPING=1\nSTATUS=stopping: answering requests in flight")
	})
}

func TestRunReturnsWithoutServiceManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "nonsense") // Run only logs this
	Run(t.Context(), Config{
		Look: func() (bool, string) { return true, "serving" }, Live: func() error { return nil },
		Logger: hclog.NewNullLogger(),
	})
}
