package zkserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// RandomPort returns a port below the range from which the kernel takes ports for outgoing
// connections. An outgoing connection could take the port of a killed server before its
// restart.
func RandomPort() int {
	const low, high = 15000, 30000 // Linux's range begins at 32768
	return low + rand.IntN(high-low)
}

// TryPort returns nil if a server can listen on the port.
func TryPort(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		return l.Close()
	}
	for errors.Unwrap(err) != nil { // to "address already in use"
		err = errors.Unwrap(err)
	}
	return fmt.Errorf("port %d: %w", port, err)
}
