// Package e2e tests the shipped binary as its users run it, with real processes, sockets, state
// directories and ZooKeeper servers. It has the scenarios of the uniqueness contract that need a
// process, a disk or an ensemble. Everything else is tested in its own package.
//
// Every ID that a test receives goes into a history, and the history is checked at the end of
// the test. No ID may occur twice. No ID of a worker may be below one that a client had received
// from that worker before asking for it.
//
// Like all tests that use zktest, they run with FLAKED_TEST_ZK=require and are skipped without
// it.
package e2e
