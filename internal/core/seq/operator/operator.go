// Package operator has the commands of people on named sequences: create, set, delete, purge and list. No node
// calls it but one without ZooKeeper (`serve --dev`), and the root package does not link it.
//
// The invariant: no command makes a value come twice, although nodes take blocks meanwhile. A command writes /seq and
// all records that it changes in one transaction over what it has read. A jump that no skip after a loss of data covers
// waits until the nodes know the last change of the name (S29), and a far one until all nodes know it (S34).
//
// Three types to read:
//
//   - Commands has the commands.
//   - Change has the settings that a command changes, and record.Named is a sequence as the commands show it.
//   - NotFollowedError says which nodes do not know a change, and whether it was made.
package operator

import (
	"errors"

	"github.com/flaked/flaked/internal/core/store"
)

// Commands has the commands of an operator on the sequences of a cluster. No value is issued twice, although nodes take
// blocks at the same time.
type Commands struct {
	Store store.Store
	// Clock is nil for that of the machine.
	Clock Clock
	// By is the operator's name, for people.
	By string
	// OnWait is called when a command has waited for the nodes for a second: see await. It may be nil.
	OnWait func()
	// IgnoredWorkers are workers for which a far jump does not wait while they are not connected (S34).
	IgnoredWorkers []int
}

// ErrNoState: no node of this cluster has served sequences yet.
var ErrNoState = errors.New("no node of this cluster has served sequences yet")

// ErrNotFound: there is no sequence with this name.
var ErrNotFound = errors.New("sequence not found")
