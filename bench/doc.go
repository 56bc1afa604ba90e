//go:build linux

// Command bench measures flaked beside Redis, memcached and floors: servers that do as
// little as a server can. In each round it measures a case with one server after the other,
// with the server on one core and the load generator (flaked bench) on another. `make bench`
// runs it.
//
// Absolute figures vary with the machine and its neighbours by far more than servers
// differ. So bench reports medians over the rounds, and ratios to the floor measured in the
// same round.
//
// It writes the raw results, the tables of docs/performance.md between their markers, a
// plot, and bench/REPORT.md, which compares the figures with their targets.
package main
