//go:build !linux || !amd64

package ownclock

import (
	"errors"
	"os/exec"
	"time"
)

var errUnsupported = errors.New("ownclock: it takes Linux on x86-64")

type page struct{}

func newPage() (*page, error)        { return nil, errUnsupported }
func (*page) set(_, _ time.Duration) {}
func (*page) close()                 {}
func start(*exec.Cmd, *page) error   { return errUnsupported }
func try(*exec.Cmd, *page) error     { return errUnsupported }
