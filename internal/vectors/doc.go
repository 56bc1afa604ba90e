// Package vectors tests that IDs of other generators are the same here: those
// that the libraries themselves make are taken apart into the same fields, and
// those that are made here of these fields are the same numbers, and are taken
// apart alike by the libraries.
//
// The libraries are in foreign, a module of its own, so that nothing else
// depends on them. vectors.jsonl is what they have made; a test asks them again
// where they have been fetched, by scripts/get-clients.sh, and fails without
// them where FLAKED_TEST_CLIENTS=require says so. `go run . make >
// ../vectors.jsonl` in foreign writes the file anew.
package vectors
