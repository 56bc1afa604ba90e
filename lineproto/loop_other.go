//go:build !linux

package lineproto

import (
	"context"
	"errors"
	"net"
	"sync"
)

// loops has no event loops on this system.
type loops struct{}

func (*loops) open(*engine) error {
	return errors.New("event loops are available on Linux only. Use Auto or Goroutines")
}

func (*loops) run(context.Context, *sync.WaitGroup)                    {}
func (*loops) watch(<-chan struct{}, context.Context, *sync.WaitGroup) {}
func (*loops) take(nc net.Conn, due int64, refused bool) bool          { return false }
func (*loops) close()                                                  {}
func (*loops) sweep()                                                  {}
func (*loops) load() int64                                             { return 0 }
func (*loops) drain(stage)                                             {}
func (*loops) stopWaits()                                              {}
func (*loops) cut() int                                                { return 0 }
