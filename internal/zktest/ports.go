package zktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// port is a TCP port on loopback, ours until it is released.
type port struct {
	number  int
	release func()
}

// takePort finds a free one. Not by binding port 0: what the kernel gives is
// from the range it also uses for outgoing connections, and would be gone when
// a killed server wants it back.
func takePort() (*port, error) {
	const low, high = 15000, 30000 // below that range (32768 on Linux)
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

// Port returns a port on loopback for something that a test starts, until the test is
// over. No two tests have the same, and no outgoing connection takes it.
func Port(t testing.TB) int {
	t.Helper()
	p, err := takePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.release)
	return p.number
}
