//go:build !linux

package main

import (
	"context"
	"errors"
	"syscall"
	"time"
)

func signalAndWait(context.Context, int, syscall.Signal, time.Duration) error {
	return errors.ErrUnsupported
}
