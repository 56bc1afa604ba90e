// Package clients tests the shipped binary with Redis clients that people use:
// redis-cli and redis-benchmark, go-redis (goredis, a module of its own), node-redis
// and ioredis (node), phpredis (php), and redis-py (examples/python).
//
// scripts/get-clients.sh fetches the clients. If one is missing, its test is skipped.
// With FLAKED_TEST_CLIENTS=require, which `make test` sets, the test fails instead. The
// tests also need FLAKED_TEST_ZK=require, like all tests on zktest.
package clients
