//go:build !linux

package load

import "net"

// loops serves each connection with goroutines.
func (r *run) loops(lanes []*lane, conns []net.Conn) ([]loop, error) {
	return clients(lanes, conns), nil
}
