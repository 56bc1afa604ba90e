package seq

import (
	"context"
	"errors"

	"github.com/flaked/flaked/internal/core/store"
)

// listing has the facts that rounds know about this node's place on the list of nodes that may own sections.
type listing struct {
	// sawLeaving is the value of ordered.Shared.Leaving at the last call of keepListed.
	sawLeaving bool
	// refused: ZooKeeper refuses the list.
	refused bool
}

// keepListed follows the list of nodes at each heartbeat, and leaves it when this node gives its sections away.
func (rs *Rounds) keepListed(ctx context.Context, followed bool) error {
	leaving := rs.issuer.ordered.Leaving()
	if !followed && leaving == rs.listing.sawLeaving {
		return nil
	}
	if leaving != rs.listing.sawLeaving {
		rs.listing.sawLeaving, rs.agenda.unfinished = leaving, true // all that this node owns is due
	}
	may := func() bool {
		return rs.follower.roundIO().unconfirmed() == 0 && !rs.issuer.series.flaps(rs.issuer.now())
	}
	err := rs.issuer.ordered.KeepListed(ctx, rs.issuer.cfg.Store, may)
	refused := err != nil && !errors.Is(err, store.ErrUnreachable)
	if refused && !rs.listing.refused {
		rs.issuer.cfg.Log.Warn("sequences: this node cannot tell others that it may own ordered sequences", "error", err)
	}
	rs.listing.refused = refused
	if refused { // nothing else needs the list
		return nil
	}
	return err
}
