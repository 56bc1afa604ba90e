// Package clients tests the shipped binary with Redis clients that people use: redis-cli,
// redis-benchmark, redis-py (examples/python) and ioredis (examples/node).
//
// scripts/get-clients.sh fetches the clients. If one is missing, its test is skipped.
// With FLAKED_TEST_CLIENTS=require, which `make nightly` sets, the test fails instead. The
// tests also need FLAKED_TEST_ZK=require, like all tests on zktest.
package clients
