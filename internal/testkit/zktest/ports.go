//go:build unix

package zktest

import (
	"errors"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zkserver"
)

// takePort reserves a free port for this process until release is called.
func takePort() (port int, release func(), err error) {
	for range 200 {
		port := zkserver.RandomPort()
		release, err := claim(port)
		if err != nil {
			continue
		}
		if zkserver.TryPort(port) == nil {
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
