// Package systemd tells the service manager that started this process how it
// is doing: that it has started, what it does, that it is not stuck, that it
// stops. Where no service manager asked for that, it does nothing.
package systemd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
)

// Config is what to tell, and when.
type Config struct {
	// Look says whether the service does its work, and in a line what it does.
	// Required. It is called often.
	Look func() (ready bool, status string)
	// Live is nil while the process is not stuck. Required. While it is, no
	// more signs of life are sent, and the service manager starts it again.
	Live func() error
	// Logger gets a line when the process is stuck. Required.
	Logger hclog.Logger
	// Every is how often to look. 0 means 1 s.
	Every time.Duration

	// notify sends a message, and tells whether there is anybody to send it to;
	// watchdog is how often signs of life are expected, 0 for never. Others for
	// tests.
	notify   func(message string) (bool, error)
	watchdog func() (time.Duration, error)
}

// moreTime is what a service that is still starting asks for at each look.
const moreTime = 30 * time.Second

// Run tells until the context ends; then, that the service stops. It returns at
// once where nobody listens. A service is started when it is first ready: what
// is told to wait for it finds it at work.
func Run(ctx context.Context, cfg Config) {
	if cfg.notify == nil {
		cfg.notify = func(message string) (bool, error) { return daemon.SdNotify(false, message) }
		cfg.watchdog = func() (time.Duration, error) { return daemon.SdWatchdogEnabled(false) }
	}
	if cfg.Every == 0 {
		cfg.Every = time.Second
	}
	watchdog, err := cfg.watchdog()
	if err != nil {
		cfg.Logger.Warn("the service manager's watchdog is not fed", "error", err)
	}
	if watchdog > 0 {
		cfg.Every = min(cfg.Every, watchdog/4)
	}
	t := teller{cfg: cfg, watchdog: watchdog > 0}
	if !t.tell() {
		return
	}
	tick := time.NewTicker(max(cfg.Every, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			_, _ = cfg.notify("STOPPING=1\nSTATUS=stopping: what has been asked is answered")
			return
		case <-tick.C:
			t.tell()
		}
	}
}

type teller struct {
	cfg      Config
	watchdog bool
	ready    bool   // has been told
	status   string // that was told last
	stuck    bool   // the log has it
}

// tell looks and sends what is news, and is false where nobody listens.
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
		t.cfg.Logger.Error("this process is stuck, and the service manager is not told otherwise any more", "reason", stuck)
	}
	t.stuck = stuck != nil
	if len(lines) == 0 {
		return true
	}
	listening, err := t.cfg.notify(strings.Join(lines, "\n"))
	if err != nil {
		// The service manager may be starting again itself: all is told anew.
		t.cfg.Logger.Debug("the service manager cannot be told", "error", err)
		return true
	}
	t.ready, t.status = t.ready || ready, status
	return listening
}
