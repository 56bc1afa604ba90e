//go:build !linux

package lineproto

import "net"

// peerState returns false and false on this system. The server notices that a client is
// gone when it answers.
func peerState(net.Conn) (halfClosed, gone bool) { return false, false }
