package node

import (
	"errors"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// attempt has the facts by which a node tries to acquire a slot.
type attempt struct {
	// usable: the node has a claim to resume. Otherwise its claim has only the identity by which it registers.
	usable bool
	// mayStartAlone: the claim is confirmed and otherZK is false, so the node may also start without ZooKeeper while
	// the lease runs: see mayGoAlone. joinCluster clears mayStartAlone if it finds another cluster.
	mayStartAlone bool
	// otherZK: the state directory was last used with another ZooKeeper. The claim may be
	// resumed only if this ZooKeeper has its record, and nothing is put back here (C17).
	otherZK bool
	// answered is the time of ZooKeeper's last answer to joinCluster, or of the beginning of acquire, monotonic ns.
	answered int64
}

// move is the next step of a start.
type move int

const (
	moveOver     move = iota // the attempt is over: with an error, or with a tenure
	moveResume               // resume the claim
	moveAlone                // start from the state directory alone
	moveRefuse               // this is another ZooKeeper, which does not have the record
	moveAnew                 // register with a new identity: the old one held a slot, and is over
	moveRegister             // register with the present identity
)

// outcome is the result of an attempt. The node chooses its next move by it.
type outcome struct {
	// tried: the node has tried to resume its claim. Otherwise it has only read the cluster's record.
	tried bool
	err   error
	// lost: ZooKeeper has lost the cluster, or the record of the claim.
	lost bool
	// leased: the lease of the claim runs. granted: a grant of the claim was acknowledged.
	leased, granted bool
}

// next returns what follows an outcome.
func (a attempt) next(o outcome) move {
	unanswered := errors.Is(o.err, store.ErrUnreachable) || errors.Is(o.err, store.ErrRefused)
	var notOurs *coordinator.NotOursError
	switch {
	case o.lost && a.otherZK:
		return moveRefuse
	//mutant:c16-alone-beyond-the-lease by sim -> case a.mayStartAlone && (o.lost || unanswered):
	case a.mayStartAlone && o.leased && (o.lost || unanswered): // alone only while the lease runs (C16)
		return moveAlone
	case o.err == nil && a.usable && !o.tried:
		return moveResume
	case o.err == nil && !o.tried:
		return moveRegister
	case o.err == nil:
		return moveOver
	case !errors.As(o.err, &notOurs):
		return moveOver
	case o.granted:
		return moveAnew
	}
	return moveRegister
}

// causeOfWait returns the cause for which a start waits after err, and retries. It is "" if err
// ends the start. The attempt began at began, monotonic ns.
func (a attempt) causeOfWait(err error, began int64) Cause {
	switch {
	case !errors.Is(err, store.ErrUnreachable):
		return ""
	case a.answered > began:
		return CauseZooKeeperSlow
	}
	return CauseZooKeeperUnreachable
}
