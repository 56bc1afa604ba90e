package record

import (
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// MaxChanged is the number of names that State.Changed has at most.
const MaxChanged = 64

// State is the record that all sequences of a cluster share, at /seq.
type State struct {
	// Cluster is the UUID of the cluster.
	Cluster string `json:"cluster"`
	// Incarnation is that of /cluster, which is read together with the state. It grows each time a node notices
	// that ZooKeeper has lost data.
	Incarnation int64 `json:"-"`
	// Time is the sequence time, ms: see State.At.
	Time int64 `json:"time"`
	// Jumped is Time as a node put it back last, after a loss of data. At least Time - Jumped has passed since.
	Jumped int64 `json:"jumped,omitempty"`
	// PutIn is the incarnation in which a node put the state back last. PutAt is about the sequence time, ms, when a
	// node last told that it still puts records back, nil if none ever has. It only grows: see ToldPutBack.
	PutIn int64  `json:"put_in,omitempty"`
	PutAt *int64 `json:"put_at,omitempty"`
	// Changes counts the changes that operators made, and the records that nodes put back. Changed are the names of the
	// last MaxChanged of them, the latest last.
	Changes int64    `json:"changes"`
	Changed []string `json:"changed,omitempty"`
	// ChangedAt is the sequence time of the last change, ms.
	ChangedAt int64 `json:"changed_at,omitempty"`
	// Purged is the highest WriteCount of the records that were purged. New records begin above it, so that nodes which
	// know an old record see that they are later. A tombstone that was not purged, and that no later purge has passed,
	// has a higher write count.
	Purged int64 `json:"purged,omitempty"`
}

// ToldPutBack returns the sequence time, ms, up to which nodes have told that they still put records back: 0, its
// beginning, if none ever has.
func (s State) ToldPutBack() int64 {
	if s.PutAt == nil {
		return 0
	}
	return *s.PutAt
}

// After returns the state after changes to the sequences names.
func (s State) After(names ...string) State {
	if len(names) == 0 {
		return s
	}
	s.Changes, s.ChangedAt = s.Changes+int64(len(names)), s.Time
	s.Changed = append(append([]string(nil), s.Changed...), names...)
	s.Changed = s.Changed[max(0, len(s.Changed)-MaxChanged):]
	return s
}

// Since returns the names that have changed since changes was read. all is true if there are more
// than the state has names of.
func (s State) Since(changes int64) (names []string, all bool) {
	n := s.Changes - changes
	if n < 0 || n > int64(len(s.Changed)) {
		return nil, true
	}
	return s.Changed[int64(len(s.Changed))-n:], false
}

// LastChange returns the number of the last change of name. If it is not among the last MaxChanged
// changes, LastChange returns the number of the change before those.
func (s State) LastChange(name string) int64 {
	n := s.Changes - int64(len(s.Changed))
	for k, changed := range s.Changed {
		if changed == name {
			n = s.Changes - int64(len(s.Changed)-1-k)
		}
	}
	return n
}

// Marshal returns the content of the record at StatePath.
func (s State) Marshal() []byte { return store.Marshal(s) }

// At returns the sequence time for a node that has known the state for this long (S23).
func (s State) At(passed time.Duration) int64 {
	//mutant:s23-raise by internal/core/seq/losses:TestTimeIsPutBackAboveRaisesAfterAPause -> return s.Time + max(passed, 0).Milliseconds()
	return s.Time + min(max(passed, 0), MostRaise).Milliseconds()
}

// Older reports whether s was written before other, in one incarnation.
func (s State) Older(other State) bool { return s.Changes < other.Changes || s.Time < other.Time }

// MostRaise is the most by which one write raises State.Time. A node counts on from there by as much at most.
const MostRaise = 15 * time.Second
