package limits

import "time"

// These constants say how far clocks may be off, and what other packages allow for that.
// TestLimitsKeepTheirRelations checks the relations between them. docs/design.md says why they
// hold the promise.
const (
	// WarnSkew is the offset between two clocks above which a node warns.
	WarnSkew = 500 * time.Millisecond

	// ClocksAgree bounds the offset between two clocks that both count as right. A node
	// refuses if its clock is further off from most others. A holder whose clock agrees
	// with most others believes no more than this of a leader's lead.
	ClocksAgree = 5 * time.Second

	// ClocksApart bounds the offset between any two clocks in use: each may be off by
	// ClocksAgree from a third, the leader's. It is added to the length of a freeze, and to
	// the lease bound of a slot that was lost.
	ClocksApart = 10 * time.Second

	// GraceParts limits the grace, the time for which a slot stays with its holder after
	// the lease bound. The grace is ClocksAgree, or the longest lease divided by GraceParts
	// if that is less. It covers a leader's clock that is behind, or is set back.
	GraceParts = 12

	// MinLease is the lease of a node that has just started to serve.
	MinLease = time.Minute

	// RotateBehind is the rollback of a clock above which a fresh slot costs less than
	// waiting for the clock to catch up. It is also the default limit of a clock that
	// coasts.
	RotateBehind = 2 * time.Second

	// MaxCoast bounds how far a clock that coasts may be ahead of its wall clock. Beyond
	// it, peers could find the clock wrong although its wall clock is right.
	MaxCoast = 4 * time.Second
)

// These constants say how far ahead of the clock bounds may lie, and how long the next
// holder waits for one.
const (
	// LockWait is how long a start waits for a state directory that another process has. A container that was
	// deleted has as long to end.
	LockWait = 30 * time.Second
	// DefaultReserve is how far ahead of the clock the reserved bound is kept on disk.
	DefaultReserve = 3 * time.Second

	// MaxReserve bounds how far ahead of the clock the reserved bound may be, including
	// what may be borrowed and coasted. A restart after a crash waits for the reserved
	// bound.
	MaxReserve = 10 * time.Second

	// MaxAhead bounds the sum of what a cluster may borrow and coast, so that
	// DefaultReserve still fits below MaxReserve.
	MaxAhead = MaxReserve - DefaultReserve

	// BoundSlack bounds how far apart the reserved bounds in the two copies of the local
	// record may be. If one copy is lost, the bound of the other is raised by BoundSlack.
	BoundSlack = 10 * time.Second

	// MaxStartWait bounds how long a node that starts waits for its clock to reach its
	// floor. It waits for up to BoundSlack longer if its bound was raised.
	MaxStartWait = 10 * time.Second

	// Cooldown bounds how far ahead of the clock the lease bound of a released slot may be
	// when a node takes the slot. The next holder waits for that bound.
	Cooldown = 10 * time.Second
)
