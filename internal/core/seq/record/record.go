// Package record has the records of named sequences in ZooKeeper, and the decisions that need nothing else: which block
// comes next, what a record that was read shows, and what is put back after a loss of data. It does no I/O.
// docs/design.md has the reasons. Marks like (S7) name its rules.
//
// The invariant: a node that takes positions writes a record whose next position lies above them, over the version that
// the decision went by. So no two writes take the same position. Only positions at the end of what a node took last are
// ever given back, by that node.
//
// Three types to read:
//
//   - Record is one sequence: its Next, its budget, and in which incarnation of the cluster it was written. Plan decides
//     the next block, Compare says what a later read shows, and PutBack what comes back.
//   - State is shared by all sequences of a cluster: the sequence time, and the count of the changes of operators.
//   - Snapshot has the records that were read together. Its checks must hold when a decision is written.
package record

import (
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/sequence"
)

// Record is a sequence in ZooKeeper. Every write raises WriteCount and has a fresh Nonce.
type Record struct {
	// ID is random, and new each time a sequence with this name is created.
	ID string `json:"id"`
	sequence.Map
	// KeyCheck is the fingerprint of the map key of a salted or scattered sequence, which is at MapKeyPath.
	KeyCheck string `json:"key_check,omitempty"`
	Settings
	// Mode cannot change.
	Mode Mode `json:"mode,omitempty"`
	// Next is the first position that was not given to a node.
	Next int64 `json:"next"`
	// RaisedTo is the first position that may still be issued: an operator has raised the next value to it.
	RaisedTo int64 `json:"from,omitempty"`
	// Credit positions may be taken at the sequence time CreditAt, ms.
	Credit   int64 `json:"credit"`
	CreditAt int64 `json:"at"`
	// PeakFrom and PeakAt bound what was ever issued: at the sequence time t, ms, all positions in use were
	// below PeakFrom plus what the hard ceiling gives in t - PeakAt. They are set when the sequence is created.
	// PeakFrom rises with Next where that is raised. A loss of data lowers neither: at a later one, an incarnation that
	// is lost may have begun with a copy from before this one (S13).
	PeakFrom int64 `json:"peak_from"`
	PeakAt   int64 `json:"peak_at"`
	// WriteCount counts the writes. It goes on when the name is created again, and above both copies when a node puts
	// the record back. Together with Incarnation it orders the copies of a record: see Newer.
	WriteCount int64  `json:"gen"`
	Nonce      string `json:"nonce"`
	// WrittenBy names the node or the operator that wrote the record last.
	WrittenBy string `json:"by,omitempty"`
	// Incarnation is that of /cluster when the sequence was created, when it took its first block after a loss of data,
	// or when an operator vouched for its next value, whichever was last.
	Incarnation int64 `json:"incarnation"`
	// EarlierHoldMs is the longest HoldMs that the sequence had before the last change.
	EarlierHoldMs int64 `json:"earlier_hold_ms,omitempty"`
	// MaxNames is the number of sequences that a template creates at most, 0 for all other records. Names is the
	// number that it has created. The tombstone of a template keeps both.
	MaxNames int64 `json:"max_names,omitempty"`
	Names    int64 `json:"names,omitempty"`
	// Above is the highest value that an earlier life of the name may have issued, -1 for none.
	Above int64 `json:"above"`
	// WaitMs is the time for which nodes that are cut off may issue values of deleted lives, 0 for none. It begins at
	// the sequence time WaitFrom, ms, and anew at each State.Jumped and State.PutAt.
	WaitMs   int64 `json:"wait_ms,omitempty"`
	WaitFrom int64 `json:"wait_from,omitempty"`
	// Owner is the nonce of the present ownership of an ordered sequence, or of a section of a family. "": nobody owns
	// it. Term counts the ownerships, Address is the address at which other nodes reach the owner ("": none), and
	// OwnedAt is the time at which the ownership began, Unix ms by the owner's clock, for people.
	Owner   string `json:"owner,omitempty"`
	Term    int64  `json:"term,omitempty"`
	Address string `json:"address,omitempty"`
	OwnedAt int64  `json:"owned_at,omitempty"`
	// SectionCount is the number of sections of a family, 0 for all other records. Its tombstone keeps it.
	SectionCount int `json:"sections,omitempty"`
	// DeletedAt is the time when an operator deleted the sequence, Unix ms, for people. 0: it was not deleted.
	DeletedAt int64 `json:"deleted_at,omitempty"`
}

// LongestHoldMs returns the longest HoldMs that the sequence has ever had.
func (r Record) LongestHoldMs() int64 { return max(r.HoldMs, r.EarlierHoldMs) }

// Budget returns the positions that may be taken at r.CreditAt.
func (r Record) Budget() positions.Budget { return positions.Budget{Credit: r.Credit, At: r.CreditAt} }

// LostOwner is Record.Owner after an operator has vouched for a next value, because an owner may be lost.
const LostOwner = "lost"

// HasOwner reports whether a node owns the sequence, as far as the record shows.
func (r Record) HasOwner() bool { return r.Owner != "" && r.Owner != LostOwner }
