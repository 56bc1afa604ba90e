// Package judge records what clients of flaked were given, and tells whether
// it was right: no ID twice, in order on a connection, in order in real time on
// a worker and on a node, with timestamps that the clocks of that moment allow,
// and nothing where a node had to refuse.
//
// It is made for hundreds of millions of IDs in bounded memory. IDs of one reply
// that follow on each other are one record of 32 bytes; each client writes a file
// of its own, in the order of its replies; uniqueness is an external sort, and
// order is one pass over the files, merged.
//
// All moments are ns since the start of the run by one monotonic clock.
package judge
