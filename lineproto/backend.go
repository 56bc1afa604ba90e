package lineproto

import (
	"context"
	"time"

	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// Backend executes the commands of a Server: it is the node. Package embedded returns that of a flaked.Node.
// Later releases add methods, so a type that changes some must embed that Backend.
//
// All methods must be safe for concurrent use. An *ids.ReplyError (found with errors.As) is sent as it is. Any other
// error is sent as NOTREADY with its text.
type Backend interface {
	// Reserve reserves between 1 and n IDs of one tick, n >= 1. It may wait for the
	// next tick, and for some milliseconds if the clock went back a little. It returns
	// soon after ctx is done. A Run of no IDs or of more than n is a bug, and the
	// client gets NOTREADY.
	Reserve(ctx context.Context, n int) (worker.Run, error)
	// Try does the same and never blocks. Where Reserve would wait, it returns an empty Run
	// and the Pause after which the caller may try again. waited is the time for which requests have
	// waited for a clock that went back.
	Try(n int, waited time.Duration) (worker.Run, worker.Pause, error)
	// Ceiling returns how many IDs the node can make in a second, or in one tick if a
	// tick is longer. 0 means no limit, or an unknown one. Clients may wait for up to
	// this many IDs in all. Beyond that, requests for many IDs get BUSY.
	Ceiling() int64
	// Waits returns how many reservations have begun to wait for a tick so far. IDs are
	// scarce while this number grows.
	Waits() int64
	// Ready returns nil if GET would be answered, and the node is not draining or waiting for named sequences. Else it
	// returns the reason.
	Ready() error
	// Decode returns a description of an ID, 1 <= id <= 2^63-1, in one line:
	// "id=… time=… timestamp_ms=… datacenter=0 worker=7 sequence=42".
	// For an ID that the layout cannot have made, it returns an *ids.ReplyError with ERR.
	Decode(id worker.ID) (string, error)
	// Worker returns one line: "worker=7 term=3 node=… name=… state=serving".
	Worker() string
	// Cluster returns the name of the node's cluster and its UUID. The UUID is empty until it is certain that
	// the node belongs to that cluster.
	Cluster() (name, uuid string)
	// Stats returns the lines of STATS, in order: names without blanks, and values.
	Stats() [][2]string
	// Now returns the time of the clock that IDs are made from.
	Now() time.Time
	// Version returns the release alone: "1.2.3".
	Version() string
}

// Sequences serves named sequences. Package embedded returns those of a flaked.Node. Later releases add
// methods, so a type that changes some must embed those Sequences.
//
// All methods must be safe for concurrent use. They never
// block and do no I/O. Names have passed sequence.CheckName. The implementation must copy a
// name or a prefix that it keeps.
//
// An *ids.ReplyError (found with errors.As) is sent as it is, and other errors as NOTREADY with their
// text. The exception is sequence.ErrPending: the node must fetch positions first. It then
// calls wake once, from another goroutine, and the caller calls the method again with the
// same w. At the first call w has Key or Passed at most. After ErrPending the caller may forget the
// request, because its client has left: a late wake does no harm.
type Sequences interface {
	// Take appends n values of a sequence to to, ascending, n >= 1. With whole the values
	// follow each other in the sequence without a gap.
	Take(w *sequence.Wait, name []byte, n int, whole bool, wake func(), to []worker.Run) ([]worker.Run, error)
	// Show returns one line that describes a sequence: fields of key=value, separated by
	// blanks. Values hold no blank.
	Show(w *sequence.Wait, name []byte, wake func()) (string, error)
	// List returns such a line for each sequence that the node knows and whose name begins
	// with prefix, if rights include it.
	List(prefix []byte, rights *sequence.Rights) []string
}
