// Package ids has what all ways to get IDs from flaked share. A program takes a Source, and
// only its main function knows which one it is:
//
//   - flaked.Open returns a node inside the program (package flaked).
//   - client.New returns a client of a node beside the program, on a unix socket, or of nodes
//     on other machines (package client). It does not link ZooKeeper's client.
//   - idstest.New returns a Source for tests.
package ids

import (
	"context"
	"errors"

	"github.com/flaked/flaked/worker"
)

// MaxTake is the most IDs or values of one Take or Range.
const MaxTake = 1_000_000

var (
	// ErrClosed is the error of calls that Close interrupted, and of calls after Close.
	ErrClosed = errors.New("flaked: closed")
	// ErrUnavailable means that no node gave an ID or a value. It is always wrapped, together
	// with the reason: a *ReplyError, an error of the network, or why a node inside the
	// program has ended. If the context ended the call, its error is wrapped too.
	ErrUnavailable = errors.New("flaked: no node gave an ID or a value")
)

// Source gives out IDs and values of named sequences. Any number of goroutines may use it at
// once. Its errors are or wrap ErrUnavailable, ErrClosed, the error of ctx or a *ReplyError.
type Source interface {
	// Next returns one new ID. If there is none now, a node inside the program refuses at once. A
	// client retries until ctx is done, so give ctx a deadline. Package client says which order IDs have.
	Next(ctx context.Context) (worker.ID, error)
	// Take returns n new IDs in ascending order, or an error and no IDs. n is 1 to MaxTake.
	Take(ctx context.Context, n int) ([]worker.ID, error)
	// Sequence returns the sequence with this name. It does no I/O: a name that is wrong or
	// unknown shows as an error of the first call.
	Sequence(name string) Sequence
}

// Sequence gives out the values of one named sequence. Any number of goroutines may use it at
// once. It holds no connection, so a program may make one for each name that it uses.
//
// Its errors are those of a Source. If a node refuses, the error wraps a *ReplyError, whose
// Reason says why.
type Sequence interface {
	// Next returns one new value.
	Next(ctx context.Context) (int64, error)
	// Take returns n new values in ascending order, perhaps with gaps, or an error and no
	// values. n is 1 to MaxTake.
	Take(ctx context.Context, n int) ([]int64, error)
	// Range returns the first and the last of n new values that follow each other:
	// first, first + increment, ..., last. n is 1 to MaxTake.
	Range(ctx context.Context, n int) (first, last int64, err error)
	// NextKeyed returns the value that belongs to key. If it is called again, by any program
	// and on any node, it returns the same value, as long as the sequence remembers the key.
	// So a call that failed can be repeated without a gap. Only strict sequences have keys.
	// A key is a letter, then letters, digits and _ . : -, 64 bytes at most.
	NextKeyed(ctx context.Context, key string) (int64, error)
}
