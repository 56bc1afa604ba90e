package lineproto

import (
	"context"
	"time"

	"github.com/flaked/flaked/worker"
)

// Backend is what the commands need of a node. All methods are called from
// many goroutines at once. Errors that are an *Error (errors.As) are sent as
// they are; any other is sent as NOTREADY with its text.
type Backend interface {
	// Reserve takes between 1 and n IDs of one tick, n >= 1. It may wait a few
	// milliseconds (for the next tick, or out a small rollback) and returns
	// soon after ctx is done. A Run that holds none or more than n is a bug
	// and answered as NOTREADY.
	Reserve(ctx context.Context, n int) (worker.Run, error)
	// Ceiling returns how many IDs can be made in a second, or in one tick where a
	// tick is longer; 0 where there is no limit, or it is not known. Clients may
	// wait for so many.
	Ceiling() int64
	// Waits returns how many reservations have begun to wait for a tick so far. IDs
	// are scarce while it grows.
	Waits() int64
	// Ready is nil when GET would be answered, else the reason why not.
	Ready() error
	// Decode describes an ID, 1 <= id <= 2^63-1, in one line:
	// "id=… time=… timestamp_ms=… datacenter=0 worker=7 sequence=42".
	// For an ID that the layout cannot have made, return an *Error with ERR.
	Decode(id worker.ID) (string, error)
	// Worker is one line: "worker=7 term=3 node=… name=… state=serving".
	Worker() string
	// Stats are what STATS prints, in order. Names have no blanks in them.
	Stats() []Stat
	// Now is the node's clock, as IDs are made from it.
	Now() time.Time
	// Version is the release alone: "1.2.3".
	Version() string
}

// Stat is one line of STATS.
type Stat struct{ Name, Value string }
