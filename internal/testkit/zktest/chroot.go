//go:build unix

package zktest

import (
	"crypto/rand"
	"regexp"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Chroot creates a znode for the test and returns the connect string that ends
// in the znode's path: "127.0.0.1:21810/TestRegister-1a2b3c4d".
func Chroot(t testing.TB, ens *Ensemble) string {
	t.Helper()
	path := "/" + pathName(t.Name()) + "-" + rand.Text()[:8]
	if err := create(ens.Addrs(), path); err != nil {
		t.Fatalf("zktest: creating %s: %v", path, err)
	}
	return ens.Addr() + path
}

// pathName returns a test's name as one path element. A test's name has slashes
// for subtests and may hold any character. All but letters and digits of ASCII
// become hyphens.
func pathName(test string) string { return notInName.ReplaceAllString(test, "-") }

var notInName = regexp.MustCompile(`[^a-zA-Z0-9]`)

func create(addrs []string, path string) error {
	conn, events, err := zk.Connect(addrs, 10*time.Second, zk.WithLogger(discard{}))
	if err != nil {
		return err
	}
	defer func() {
		conn.Close()
		// Close does not wait for the client's loop. The loop closes the channel when
		// it ends.
		for range events {
		}
	}()

	// The client's calls take no context. Close ends them.
	timeout := time.AfterFunc(Timeout, conn.Close)
	defer timeout.Stop()
	_, err = conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	return err
}

// discard drops the client's log messages. They cannot go to t.Log, which panics
// after the test has ended: the client may log as late as that.
type discard struct{}

func (discard) Printf(string, ...any) {}
