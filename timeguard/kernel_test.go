package timeguard

import (
	"errors"
	"runtime"
	"syscall"
	"testing"
)

func TestKernelClock(t *testing.T) {
	k, err := KernelClock()
	switch {
	case runtime.GOOS != "linux":
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v", err)
		}
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSYS):
		t.Skipf("this sandbox does not let it be asked: %v", err)
	case err != nil || k.MaxError < 0 || k.EstError < 0:
		t.Errorf("%+v, %v", k, err)
	}
}
