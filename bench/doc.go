//go:build linux

// Command bench measures flaked beside Redis, memcached and the least that a
// server can do, in one run: each case is measured for one after the other, round
// after round, with the server on one core and the generator (flaked bench) on
// another. `make bench` runs it.
//
// Absolute figures move with the machine and its neighbours by far more than
// servers differ. What it writes down are medians over the rounds, and ratios to
// the floor that was measured in the same minute.
//
// It writes the raw results, the tables of docs/performance.md between their
// markers, a plot, and bench/REPORT.md: what was wanted, and whether it was reached.
package main
