// Package localcache keeps a node's state directory: one small state file, locked against
// a second process. After a power cut, a torn write, a full disk or damage, it returns a
// record that is safe to go on from, or none. It makes no decisions about slots or clocks.
//
// The file holds the record twice, in two blocks of 4 KiB. block.go describes their bytes,
// and cache.go says why no single fault loses the record. Read the types Cache, which writes the
// file, Record, its content, and Dir, the open directory.
//
// This package is not part of the API of flaked: its exported names may change in any release.
package localcache
