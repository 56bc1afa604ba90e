package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/words"
)

// serviceState reports whether the node serves, and returns the text for `systemctl status`.
func serviceState(s node.Snapshot) (ready bool, text string) {
	switch {
	case s.Worker == nil:
		return false, fmt.Sprintf("no worker yet: %s %s", s.Code, s.Reason)
	case !s.Ready:
		return false, fmt.Sprintf("worker %d refuses: %s %s", *s.Worker, s.Code, s.Reason)
	}
	text = fmt.Sprintf("serving worker %d", *s.Worker)
	if s.LeaseLeftMs != nil {
		text += ", lease " + roundedText(millis(*s.LeaseLeftMs))
	}
	if len(s.Degraded) > 0 {
		text += "; degraded: " + strings.Join(s.Degraded, ", ")
	}
	return true, text
}

// roundedText formats a duration so that the text does not change every second.
func roundedText(d time.Duration) string {
	if d < 10*time.Minute {
		return words.Duration(d.Truncate(10 * time.Second).Milliseconds())
	}
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
}
