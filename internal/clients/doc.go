// Package clients tests the binary that is shipped with the Redis clients that
// people use: redis-cli and redis-benchmark, go-redis (goredis, a module of its
// own), node-redis and ioredis (node), phpredis (php).
//
// scripts/get-clients.sh fetches them. Where one is missing its test is
// skipped, and fails with FLAKED_TEST_CLIENTS=require, which `make test` sets.
// Like everything on zktest the tests need FLAKED_TEST_ZK=require as well.
package clients
