// Package systemd reports the state of this process to the service manager that started
// it: that the service is ready, a one-line status, a watchdog message while the process
// is not stuck, and that the service stops. It does nothing without NOTIFY_SOCKET in the
// environment, because then no service manager listens.
package systemd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
)

// Config is the configuration of Run.
type Config struct {
	// Look reports whether the service does its work, and returns a one-line status.
	// Required. Run calls it every second, or four times in the watchdog's time if that is less.
	Look func() (ready bool, status string)
	// Live returns nil, or the reason why the process is stuck. Required. While the
	// process is stuck Run sends no watchdog messages, so that the service manager
	// restarts it.
	Live func() error
	// Logger gets a line when the process gets stuck. Required.
	Logger hclog.Logger

	// notify sends a message and reports whether a service manager listens. watchdog
	// returns the longest time between two watchdog messages, or 0 without a watchdog.
	// Tests replace both.
	notify   func(message string) (bool, error)
	watchdog func() (time.Duration, error)
}

// moreTime is the extension of the start timeout that a service asks for at each look
// until it is first ready.
const moreTime = 30 * time.Second

// Run reports the state of the service until the context ends, and then reports that it
// stops. Run returns at once if no service manager listens. It reports READY=1 only when
// Look first returns true, so that units ordered after the service find it at work.
func Run(ctx context.Context, cfg Config) {
	if cfg.notify == nil {
		cfg.notify = func(message string) (bool, error) { return daemon.SdNotify(false, message) }
		cfg.watchdog = func() (time.Duration, error) { return daemon.SdWatchdogEnabled(false) }
	}
	every := time.Second
	watchdog, err := cfg.watchdog()
	if err != nil {
		cfg.Logger.Warn("invalid WATCHDOG_USEC or WATCHDOG_PID, sending no watchdog messages", "error", err)
	}
	if watchdog > 0 {
		every = max(min(every, watchdog/4), time.Millisecond)
	}
	t := teller{cfg: cfg, watchdog: watchdog > 0}
	if !t.tell() {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			_, _ = cfg.notify("STOPPING=1\nSTATUS=stopping: answering requests in flight")
			return
		case <-tick.C:
			t.tell()
		}
	}
}

type teller struct {
	cfg      Config
	watchdog bool
	ready    bool   // READY=1 sent
	status   string // the last one sent
	stuck    bool   // and logged
}

// tell sends the changes since the last call, and a watchdog message unless the process is
// stuck. It returns false if no service manager listens.
func (t *teller) tell() bool {
	ready, status := t.cfg.Look()
	stuck := t.cfg.Live()
	var lines []string
	if ready && !t.ready {
		lines = append(lines, "READY=1")
	}
	if status = strings.Join(strings.Fields(status), " "); status != t.status {
		lines = append(lines, "STATUS="+status)
	}
	if stuck == nil && t.watchdog {
		lines = append(lines, "WATCHDOG=1")
	}
	if stuck == nil && !ready && !t.ready {
		lines = append(lines, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", moreTime.Microseconds()))
	}
	if stuck != nil && !t.stuck {
		t.cfg.Logger.Error("process stuck, sending no more watchdog messages", "reason", stuck)
	}
	t.stuck = stuck != nil
	if len(lines) == 0 {
		return true
	}
	listening, err := t.cfg.notify(strings.Join(lines, "\n"))
	if err != nil {
		// The service manager may be restarting. The next call sends these changes again.
		t.cfg.Logger.Debug("sending to the service manager failed", "error", err)
		return true
	}
	t.ready, t.status = t.ready || ready, status
	return listening
}
