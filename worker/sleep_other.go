//go:build !linux

package worker

import "time"

type exactSleep struct{}

func (*exactSleep) sleep(d time.Duration) { time.Sleep(d) }
