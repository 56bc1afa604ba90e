// Package chaos is the fault campaign. It runs five nodes on a real
// ZooKeeper ensemble of three servers, under load, and makes random faults. `make chaos` runs
// it for half an hour, `make test` for some seconds.
//
// Each node is a machine with
//   - flaked, built with a clock that a test can step,
//   - a wall clock that the campaign steps while the process runs (internal/testkit/ownclock),
//   - a link to each ZooKeeper server that breaks on demand (internal/testkit/faultnet),
//   - as root, a file system that fills up, becomes read-only and stalls (internal/testkit/faultdisk).
//
// One goroutine per machine makes one fault after the other there, independently of the other
// machines. Another goroutine does the same to ZooKeeper. So faults of different machines
// overlap. On each machine the next fault begins only when the node is well again, so the
// effect of each fault is known.
//
// Clients record every ID that they receive, and every request that was not answered with an
// ID. At the end judge_test.go checks the IDs, and the campaign checks the rest. A node must
// serve, except during faults of its own that stop it. It must not serve while its clock is
// behind, or beyond its reserved bound or its lease bound.
//
// Other clients ask for values of named sequences while an operator changes these sequences. The sequences' own
// checks are in seqjudge_test.go.
//
// The results of a run are in report.txt. The seed determines the faults, their
// order and their parameters. The exact times of the faults depend on the machine's speed.
package chaos
