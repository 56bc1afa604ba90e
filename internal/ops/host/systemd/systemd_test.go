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

// manager is a service, and the manager that is told of it.
type manager struct {
	// mu guards all below. The clock of a synctest bubble does not order memory accesses for the race detector.
	mu      sync.Mutex
	ready   bool
	status  string
	stuck   error
	failing error // of telling
	told    []string
}

func (m *manager) config() Config {
	return Config{
		Look:   func() (bool, string) { m.mu.Lock(); defer m.mu.Unlock(); return m.ready, m.status },
		Live:   func() error { m.mu.Lock(); defer m.mu.Unlock(); return m.stuck },
		Logger: hclog.NewNullLogger(),
		notify: func(message string) (bool, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.failing == nil {
				m.told = append(m.told, message)
			}
			return true, m.failing
		},
		watchdog: func() (time.Duration, error) { return 4 * time.Second, nil },
	}
}

// now makes a change.
func (m *manager) now(change func()) { m.mu.Lock(); defer m.mu.Unlock(); change() }

// next checks the messages sent since the call before.
func (m *manager) next(t *testing.T, what string, want ...string) {
	t.Helper()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.told, want) {
		t.Errorf("%s: told %q, want %q", what, m.told, want)
	}
	m.told = nil
}

func TestRunSendsOnlyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &manager{status: "starting"}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); Run(ctx, m.config()) }()
		const alive, patience = "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=30000000"
		m.next(t, "at first", "STATUS=starting\n"+alive+"\n"+patience)
		for _, step := range []struct {
			what   string
			change func()
			after  time.Duration
			want   []string
		}{
			{"no news", func() {}, time.Second, []string{alive + "\n" + patience}},
			{"it serves", func() { m.ready, m.status = true, "serving\nworker 7" }, time.Second,
				[]string{"READY=1\nSTATUS=serving worker 7\n" + alive}},
			{"no news", func() {}, 2 * time.Second, []string{alive, alive}},
			{"it refuses", func() { m.ready, m.status = false, "refusing" }, time.Second,
				[]string{"STATUS=refusing\n" + alive}},
			{"it is stuck", func() { m.stuck = errors.New("a loop does not turn") }, 3 * time.Second, nil},
			{"it goes on", func() { m.stuck, m.status, m.ready = nil, "serving worker 7", true }, time.Second,
				[]string{"STATUS=serving worker 7\n" + alive}},
			{"nobody hears", func() { m.failing, m.status = errors.New("connection refused"), "serving worker 8" },
				2 * time.Second, nil},
			{"what was not heard", func() { m.failing = nil }, time.Second,
				[]string{"STATUS=serving worker 8\n" + alive}},
		} {
			m.now(step.change)
			time.Sleep(step.after)
			m.next(t, step.what, step.want...)
		}
		cancel()
		<-ended
		m.next(t, "it stops", "STOPPING=1\nSTATUS=stopping: answering requests in flight")
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
