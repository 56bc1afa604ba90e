//go:build unix

package zktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// takePort reserves a free port for this process until release is called.
func takePort() (port int, release func(), err error) {
	for range 200 {
		port := randomPort()
		release, err := claim(port)
		if err != nil {
			continue
		}
		if tryPort(port) == nil {
			return port, release, nil
		}
		release()
	}
	return 0, nil, errors.New("found no free port")
}

// Port returns a loopback port for a server that the test starts. Until the test ends, no
// other test gets this port, and no outgoing connection takes it.
func Port(t testing.TB) int {
	t.Helper()
	port, release, err := takePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// randomPort returns a port below the range from which the kernel takes ports for outgoing
// connections. An outgoing connection could take the port of a killed server before its
// restart.
func randomPort() int {
	const low, high = 15000, 30000 // Linux's range begins at 32768
	return low + rand.IntN(high-low)
}

// tryPort returns nil if a server can listen on the port.
func tryPort(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		return l.Close()
	}
	for errors.Unwrap(err) != nil { // to "address already in use"
		err = errors.Unwrap(err)
	}
	return fmt.Errorf("port %d: %w", port, err)
}
