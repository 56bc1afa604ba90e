// Package e2e tests the binary that is shipped, as its users run it: real
// processes, real sockets, real state directories, real ZooKeepers. What a
// test of one package can show is shown there; here are the scenarios of the
// uniqueness contract that take a process, a disk and an ensemble to happen.
//
// Every ID that a test is answered goes into a history, and at the test's end
// the history is judged: no ID twice, whoever handed it out, and no ID below
// one that the same worker had handed out before it was asked for.
//
// Like everything on zktest, the tests run with FLAKED_TEST_ZK=require and are
// skipped without it.
package e2e
