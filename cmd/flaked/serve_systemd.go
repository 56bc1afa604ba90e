package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/node"
)

// serviceState reports whether any of these workers serves, and returns the text
// for `systemctl status`.
func serviceState(workers []node.Snapshot) (ready bool, text string) {
	var serving, idle []string
	var lease *int64
	for _, w := range workers {
		switch {
		case w.Ready:
			serving = append(serving, workerName(w))
			lease = clusterview.Shorter(lease, w.LeaseLeftMs)
		case w.Worker == nil:
			idle = append(idle, fmt.Sprintf("no worker yet: %s %s", w.Code, w.Reason))
		default:
			idle = append(idle, fmt.Sprintf("worker %s refuses: %s %s", workerName(w), w.Code, w.Reason))
		}
	}
	var parts []string
	if len(serving) > 0 {
		word := "worker "
		if len(serving) > 1 {
			word = "workers "
		}
		parts = append(parts, "serving "+word+strings.Join(serving, ", "))
	}
	if lease != nil {
		parts[0] += ", lease " + coarse(millis(*lease))
	}
	for _, w := range workers {
		if w.Ready && len(w.Degraded) > 0 {
			parts = append(parts, fmt.Sprintf("worker %s is degraded: %s", workerName(w), strings.Join(w.Degraded, ", ")))
		}
	}
	return len(serving) > 0, strings.Join(append(parts, idle...), "; ")
}

func workerName(w node.Snapshot) string {
	if w.Worker == nil {
		return "-"
	}
	return strconv.Itoa(*w.Worker)
}

// coarse formats a duration so that the text does not change every second.
func coarse(d time.Duration) string {
	if d < 10*time.Minute {
		return clusterview.Brief(d.Truncate(10 * time.Second).Milliseconds())
	}
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
}
