//go:build !linux

package worker

import "time"

func preciseSleep(d time.Duration) { time.Sleep(d) }
