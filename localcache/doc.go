// Package localcache keeps a node's state directory. In it is one small state file, locked against a second process.
// After a power cut, a torn write, a full disk or damage, the package returns a record of it that is safe to go on
// from, or none. It makes no decisions about slots or clocks. Dir also reads and writes other files of the directory:
// the journal and the witness of named sequences.
//
// The state file holds the record twice, in two blocks of 4 KiB. block.go describes their bytes, and statefile.go says
// why no single fault loses the record. Read the types StateFile, which writes the file, Record, its content, and Dir,
// the open directory.
//
// This package is not part of the API of flaked: its exported names may change in any release.
package localcache
