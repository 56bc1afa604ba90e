package zktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// port is a TCP port on loopback, reserved for this process until release.
type port struct {
	number  int
	release func()
}

// takePort reserves a free port. It does not bind port 0, because the kernel would
// choose from the range that it also uses for outgoing connections. An outgoing
// connection could then take the port of a killed server before its restart.
func takePort() (*port, error) {
	const low, high = 15000, 30000 // Linux's range begins at 32768
	for range 200 {
		n := low + rand.IntN(high-low)
		release, err := claim(n)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", n))
		if err != nil {
			release()
			continue
		}
		l.Close()
		return &port{number: n, release: release}, nil
	}
	return nil, errors.New("found no free port")
}

// Port returns a loopback port for a server that the test starts. Until the test ends, no
// other test gets this port, and no outgoing connection takes it.
func Port(t testing.TB) int {
	t.Helper()
	p, err := takePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.release)
	return p.number
}
