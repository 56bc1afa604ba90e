package zktest

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Chroot creates a node of its own for the test and returns the connect string
// that ends in it: "127.0.0.1:21810/TestRegister-1a2b3c4d".
func Chroot(t testing.TB, ens *Ensemble) string {
	t.Helper()
	path := "/" + pathName(t.Name()) + "-" + randomHex()
	if err := create(ens.Addrs(), path); err != nil {
		t.Fatalf("zktest: creating %s: %v", path, err)
	}
	return ens.Addr() + path
}

// pathName makes one path element of a test's name, which has slashes for
// subtests and may hold anything.
func pathName(test string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '-'
	}, test)
}

func randomHex() string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func create(addrs []string, path string) error {
	conn, events, err := zk.Connect(addrs, 10*time.Second, zk.WithLogger(discard{}))
	if err != nil {
		return err
	}
	defer func() {
		conn.Close()
		for range events { // Close does not wait for its loop; its end closes the channel
		}
	}()

	// No call of this client takes a context.
	done := make(chan error, 1)
	go func() {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		done <- err
	}()
	timeout := time.NewTimer(serveTimeout)
	defer timeout.Stop()
	select {
	case err := <-done:
		return err
	case <-timeout.C:
		return errors.New("no answer")
	}
}

// discard keeps the client quiet. Not t.Log: it may speak after the test.
type discard struct{}

func (discard) Printf(string, ...any) {}
