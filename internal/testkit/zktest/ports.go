//go:build unix

package zktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// takePort reserves a free port for this process until release is called. The port is below the
// range from which the kernel takes ports for outgoing connections, which begins at 32768 on Linux.
// An outgoing connection could take the port of a killed server before its restart.
func takePort() (port int, release func(), err error) {
	for range 200 {
		const low, high = 15000, 30000
		port = low + rand.IntN(high-low)
		if release, err = claim(port); err != nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, release, l.Close()
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
