package losses

import (
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/timeguard"
)

// soonPutBack is the number of records that a node usually puts back in its first round, so that it need not tell
// before.
const soonPutBack = 64

// Tells returns /seq as the node writes it to tell the others what it does after a loss: that it still puts back so
// many records, lost (S9), unless it has just begun with few of them, and the names of those that it has put back. They
// count as changes, so that the others read them, also if that came when their time was over (S36). due is false if
// there is nothing to tell. follow is the time between two heartbeats.
func (k State) Tells(lost int, names []string, now timeguard.Moment, follow time.Duration) (next record.State, due bool) {
	late := now.Most-k.entered.Most > int64(follow/2)
	puts := lost > 0 && (late || lost > soonPutBack)
	//mutant:s36-unheard by internal/core/seq:TestNodesHearOfALatePutBack -> next = k.seq().state
	next = k.seq().state.After(names...)
	if puts {
		next.PutAt = new(max(next.ToldPutBack()+1, k.SeqTime(now.Least)))
	}
	return next, puts || len(names) > 0
}
