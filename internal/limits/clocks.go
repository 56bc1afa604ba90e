package limits

import "time"

// How far clocks may be off, and what is allowed for it elsewhere. TestRelations has
// the relations between these times; docs/safety.md says why they hold the promise.
const (
	// WarnSkew is the offset between two clocks that is worth a warning.
	WarnSkew = 500 * time.Millisecond

	// ClocksAgree bounds the offset between two clocks that both count as right. A node
	// whose clock is further off from most others refuses. An owner believes no more
	// than this of a leader's lead, while most agree with its own clock.
	ClocksAgree = 5 * time.Second

	// ClocksApart bounds the offset between any two clocks in use: each may be off by
	// ClocksAgree from a third, the leader's. A freeze of registration, and the bound
	// of a slot that was lost or is lowered by hand, are longer by this.
	ClocksApart = 10 * time.Second

	// GraceParts says for how long a slot is left to its holder after the lease bound:
	// for ClocksAgree, or this part of the longest lease if that is less. It covers a
	// leader's clock that is behind, or is set back.
	GraceParts = 12

	// MinLease is the lease of a node that has just begun.
	MinLease = time.Minute

	// RotateBehind is the rollback of a clock from which a fresh slot costs less than
	// waiting for the clock to catch up. A clock that coasts makes up for as much, by
	// default.
	RotateBehind = 2 * time.Second

	// MaxCoast bounds how far a clock that coasts may be ahead of its wall clock. If it
	// were further ahead, its peers could find a clock wrong whose wall clock is right.
	MaxCoast = 4 * time.Second
)

// How far ahead of the clock bounds may lie, and how long the next holder waits for one.
const (
	// DefaultReserve is how far ahead of the clock the reserved bound is kept on disk.
	DefaultReserve = 3 * time.Second

	// MaxReserve bounds how far ahead of the clock the reserved bound is, with what may
	// be borrowed and coasted: a restart after a crash waits for the reserved bound.
	MaxReserve = 10 * time.Second

	// MaxAhead bounds what a cluster may borrow and coast together, so that there is
	// room for DefaultReserve below MaxReserve.
	MaxAhead = MaxReserve - DefaultReserve

	// BoundSlack bounds how far the reserved bound in one copy of the local record may
	// be ahead of that in the other. A bound whose other copy is lost is raised by it.
	BoundSlack = 10 * time.Second

	// MaxStartWait bounds how long a node that starts waits for its clock to reach its
	// floor. It waits for BoundSlack longer if its bound was raised.
	MaxStartWait = 10 * time.Second

	// Cooldown bounds how far ahead the lease bound of a released slot may be for the
	// slot to be taken. Its next holder waits for that bound.
	Cooldown = 10 * time.Second
)
