// Package vectors tests flaked's layouts against the libraries of other generators. IDs
// that the libraries make decode here to the same fields. IDs that flaked encodes from
// these fields are the same numbers, and the libraries decode them alike.
//
// The libraries are in foreign, a module of its own, so that nothing else depends on
// them. vectors.jsonl holds IDs that they have made. Another test runs the libraries
// themselves, if scripts/get-clients.sh has fetched them. Without them it fails if
// FLAKED_TEST_CLIENTS=require is set, and is skipped otherwise. `go run . make >
// ../vectors.jsonl` in foreign writes the file anew.
package vectors
