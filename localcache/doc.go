// Package localcache is the state directory of a node: one small record file,
// locked against a second process, that survives power cuts, torn writes, full
// disks and damage without ever giving a wrong answer. It decides nothing about
// slots or clocks; it keeps what was decided, and what it cannot vouch for it
// does not return.
//
// The file holds the record twice, in two blocks of 4 KiB (see block.go for
// their bytes and cache.go for why no single fault can hurt).
package localcache
