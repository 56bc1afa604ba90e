// Package zktest runs real ZooKeeper servers for tests: one, or an ensemble of
// three, on loopback and on ports of their own, with the faults that flaked
// has to survive: kill, stop, freeze, wipe, restore of an older copy.
//
// A server is up in half a second and takes 60 MB, so nothing needs to be
// mocked where ZooKeeper's behaviour is the point:
//
//	func TestTakeover(t *testing.T) {
//		zk := zktest.Three(t)
//		...
//		zk.Kill(zk.Leader(t))
//		zk.WaitServing(t)
//	}
//
// Tests that do no harm to the server share one per test binary, and keep
// apart by a chroot:
//
//	func TestMain(m *testing.M) { zktest.Main(m) }
//
//	func TestRegister(t *testing.T) {
//		connect := zktest.Chroot(t, zktest.Shared(t))
//		...
//	}
//
// SingleOn and ThreeOn give servers wall clocks of their own, which a test can
// step: what ZooKeeper stamps records with is what flaked compares clocks by.
//
// # When the tests run
//
// With FLAKED_TEST_ZK=require, as `make test` sets it, and then a missing
// ZooKeeper or Java fails the test: a suite that is green because nothing ran
// is worse than a red one. Without it they are skipped, and say so.
//
// The jars and Java are those that scripts/zk-dev.sh found or installed
// (FLAKED_ZK_CLASSPATH and FLAKED_ZK_JAVA), else Debian's.
//
// # What to know
//
// Servers are numbered from 0. They speak with tickTime=500: sessions last
// from 1 s to 10 s, whatever a client asks for. They do not fsync; a write
// survives the kill of a server, which leaves the kernel's page cache alone,
// and no test pulls the machine's plug. The package leaves no goroutines behind
// a call, so leak checks see only the code under test.
package zktest
