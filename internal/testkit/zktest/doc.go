//go:build unix

// Package zktest runs real ZooKeeper servers for tests: one, or an ensemble of
// three. They listen on loopback, on ports of their own. A test can cause the
// faults that flaked has to survive: kill, stop, freeze, wipe, and restore of an
// older copy.
//
// A server starts in half a second and takes 60 MB. So a test that depends on
// ZooKeeper's behaviour does not need a mock:
//
//	func TestTakeover(t *testing.T) {
//		zk := zktest.Three(t)
//		...
//		zk.Kill(zk.Leader(t))
//		zk.WaitServing(t)
//	}
//
// Tests that do no harm to the server share one server per test binary. Each
// test uses a chroot of its own:
//
//	func TestMain(m *testing.M) { zktest.Main(m) }
//
//	func TestRegister(t *testing.T) {
//		connect := zktest.Chroot(t, zktest.Shared(t))
//		...
//	}
//
// # When the tests run
//
// Tests with ZooKeeper run when FLAKED_TEST_ZK is "require", as `make test`
// sets it. A missing ZooKeeper or Java then fails the test: a suite that passes
// because nothing ran is worse than one that fails. Without FLAKED_TEST_ZK the
// tests are skipped, and say so.
//
// The jars and Java are those that scripts/zk-dev.sh found or installed
// (FLAKED_ZK_CLASSPATH and FLAKED_ZK_JAVA). If those variables are not set, the
// package uses Debian's jars and the java of PATH.
//
// # What to know
//
// Servers are numbered from 0. They run with tickTime=500: sessions last from
// 1 s to 10 s, whatever a client asks for. Servers do not fsync. A write still
// survives the kill of a server, because the kernel keeps its page cache. Only a
// power failure would lose the write. No goroutine outlives a call of this
// package, so leak checks see only the code under test.
package zktest
