//go:build !linux

package lineproto

import (
	"context"
	"errors"
	"net"
	"sync"
)

// loop does not exist on this system: listeners have a nil one.
type loop struct{}

func newLoop(*listener) (*loop, error) { return nil, errors.ErrUnsupported }

func (*loop) start(context.Context, *sync.WaitGroup)           {}
func (*loop) take(nc net.Conn, ticks int64, refused bool) bool { return false }
func (*loop) free()                                            {}
func (*loop) sweepSoon(*surplus)                               {}
func (*loop) drainTo(stage)                                    {}

func limitUnsent(*net.TCPConn) {}

// peerState returns false and false on this system. The server notices that a client is
// gone when it answers.
func peerState(net.Conn) (halfClosed, gone bool) { return false, false }
