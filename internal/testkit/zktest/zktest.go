//go:build unix

package zktest

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

// Single starts one standalone server and waits until it serves. It ends with
// the test. Settings are further lines of zoo.cfg, such as "enforceQuota=true".
func Single(t testing.TB, settings ...string) *Ensemble {
	t.Helper()
	return start(t, 1, settings)
}

// Three starts an ensemble of three and waits until it serves. It ends with
// the test. Settings are further lines of zoo.cfg.
func Three(t testing.TB, settings ...string) *Ensemble {
	t.Helper()
	return start(t, 3, settings)
}

// Secure returns settings for servers that also take TLS, at SecureAddr. The authority signs their certificate.
// It needs a release of Maven Central: Debian's may lack the libraries.
func Secure(t testing.TB, ca *certtest.CA) []string {
	dir, pair := t.TempDir(), ca.Pair("zookeeper", time.Now().Add(24*time.Hour))
	key := certtest.Write(t, dir, "key.pem", slices.Concat(pair.Key, pair.Cert))
	return []string{
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory", "secureClientPort=" + securePort,
		"ssl.keyStore.type=PEM", "ssl.keyStore.location=" + key, "ssl.clientAuth=none",
		"ssl.trustStore.type=PEM", "ssl.trustStore.location=" + certtest.Write(t, dir, "ca.pem", ca.PEM),
	}
}

func start(t testing.TB, n int, settings []string) *Ensemble {
	t.Helper()
	prog := require(t)
	// Cleanups run in reverse order. TempDir comes before the cleanup below, so
	// that the directory is removed when no server writes into it any more.
	dir := t.TempDir()
	c, err := launch(prog, dir, n, settings)
	if err != nil {
		t.Fatalf("zktest: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.tail())
		}
		c.close()
	})
	return &Ensemble{tb: t, cluster: c}
}

// shared is the server that the tests of this binary share. It is package-level
// state, because the server must outlive each single test.
var shared struct {
	mu      sync.Mutex
	running bool // Run is active, and will end the server
	dir     string
	cluster *cluster
	err     error // of the first start, which is not repeated
}

// Shared returns a single server that all tests of this binary share. The first
// call starts the server. Each test uses a Chroot of its own and must not break
// the server: Kill, Wipe and the like fail the test. Shared needs Main, or Run.
func Shared(t testing.TB) *Ensemble {
	t.Helper()
	prog := require(t)

	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.running {
		t.Fatal("zktest: Shared needs: func TestMain(m *testing.M) { zktest.Main(m) }")
	}
	if shared.cluster == nil && shared.err == nil {
		shared.dir, shared.err = os.MkdirTemp("", "flaked-zktest-")
		if shared.err == nil {
			shared.cluster, shared.err = launch(prog, shared.dir, 1, nil)
		}
	}
	if shared.err != nil {
		t.Fatalf("zktest: the shared server: %v", shared.err)
	}

	c := shared.cluster
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.tail())
		}
	})
	return &Ensemble{tb: t, cluster: c, shared: true}
}

// Main runs the tests, ends the shared server and exits: the whole body of a
// TestMain in packages that use Shared.
func Main(m interface{ Run() int }) {
	os.Exit(Run(m))
}

// Run is Main without the exit, for a TestMain that has more to do. It returns
// the exit code.
func Run(m interface{ Run() int }) int {
	shared.mu.Lock()
	shared.running = true
	shared.mu.Unlock()

	defer func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		shared.running = false
		if shared.cluster != nil {
			shared.cluster.close()
			shared.cluster = nil
		}
		if shared.dir != "" {
			os.RemoveAll(shared.dir)
		}
	}()
	return m.Run()
}

// require returns the program that runs a server. It skips the test if
// FLAKED_TEST_ZK is not set. It fails the test if FLAKED_TEST_ZK is "require" and
// ZooKeeper or Java is missing.
func require(t testing.TB) program {
	t.Helper()
	switch mode := os.Getenv("FLAKED_TEST_ZK"); mode {
	case "require":
	case "":
		t.Skip("needs a real ZooKeeper: run `make test`, or set FLAKED_TEST_ZK=require")
	default:
		t.Fatalf("zktest: FLAKED_TEST_ZK is %q; it is \"require\" or not set", mode)
	}
	prog, err := find()
	if err != nil {
		t.Fatalf("zktest: FLAKED_TEST_ZK=require, but %v; `make test` installs what is missing", err)
	}
	return prog
}

// find returns the program that FLAKED_ZK_JAVA and FLAKED_ZK_CLASSPATH name. If one of
// them is not set, find takes java from PATH, and the jars that Debian installs. The
// manifest of zookeeper.jar names the jars that the classpath does not.
func find() (prog program, err error) {
	if prog.Classpath = os.Getenv("FLAKED_ZK_CLASSPATH"); prog.Classpath == "" {
		const jars = "/usr/share/java/"
		if _, err := os.Stat(jars + "zookeeper.jar"); err != nil {
			return prog, fmt.Errorf("found no ZooKeeper jars: %w", err)
		}
		prog.Classpath = jars + "zookeeper.jar:" + jars + "slf4j-simple.jar"
	}
	prog.Java, err = exec.LookPath(cmp.Or(os.Getenv("FLAKED_ZK_JAVA"), "java"))
	return prog, err
}

// Chroot creates a znode for the test and returns the connect string that ends
// in the znode's path: "127.0.0.1:21810/TestRegister-1a2b3c4d".
func Chroot(t testing.TB, ens *Ensemble) string {
	t.Helper()
	path := "/" + notInName.ReplaceAllString(t.Name(), "-") + "-" + rand.Text()[:8]
	if err := create(ens.Addrs(), path); err != nil {
		t.Fatalf("zktest: creating %s: %v", path, err)
	}
	return ens.Addr() + path
}

// notInName matches the characters that zktest replaces in a path element: a test's name has slashes for subtests and
// may have any character.
var notInName = regexp.MustCompile(`[^a-zA-Z0-9]`)

func create(addrs []string, path string) error {
	return connected(addrs, func(conn *zk.Conn) error { return put(conn, path, nil) })
}

func put(conn *zk.Conn, path string, data []byte) error {
	_, err := conn.Create(path, data, 0, zk.WorldACL(zk.PermAll))
	return err
}

// Quota sets the hard quota of a path, in bytes and in znodes. -1 means no limit. It counts only on a server
// with enforceQuota=true.
func (e *Ensemble) Quota(t testing.TB, path string, bytes, count int) {
	t.Helper()
	err := connected(e.Addrs(), func(conn *zk.Conn) error {
		at := "/zookeeper/quota"
		for name := range strings.SplitSeq(path[1:], "/") {
			at += "/" + name
			if err := put(conn, at, nil); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
		}
		limits := fmt.Appendf(nil, "count=-1,bytes=-1=;byteHardLimit=%d;countHardLimit=%d", bytes, count)
		if err := put(conn, at+"/zookeeper_limits", limits); errors.Is(err, zk.ErrNodeExists) {
			_, err = conn.Set(at+"/zookeeper_limits", limits, -1)
			return err
		}
		return put(conn, at+"/zookeeper_stats", []byte("count=0,bytes=0")) // the server counts
	})
	if err != nil {
		t.Fatalf("zktest: the quota of %s: %v", path, err)
	}
}

// connected calls f with a connection.
func connected(addrs []string, f func(*zk.Conn) error) error {
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
	return f(conn)
}

// discard drops the client's log messages. They cannot go to t.Log, which panics
// after the test has ended: the client may log as late as that.
type discard struct{}

func (discard) Printf(string, ...any) {}
