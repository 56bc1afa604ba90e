// Package seqimport reads the counters of other generators: rows of Leaf's and tinyid's tables, of MySQL, PostgreSQL
// and Redis. It finds out the first number that each of them has not issued. It does no I/O but reading the rows.
package seqimport
