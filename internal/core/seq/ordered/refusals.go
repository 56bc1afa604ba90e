package ordered

import (
	"time"

	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// NotOwner refuses a request that another node has forwarded: this one has not the ownership that it names.
func NotOwner(name string) *record.Refusal {
	return record.Refuse(record.NotOwner, 0, "this node is not the owner of %s that the request names. Ask again", name)
}

// noOwner: address is that of the owner, "" for none, and why what happened there. own: this node has the same address.
func noOwner(name, address string, own bool, why error) *record.Refusal {
	if address == "" {
		return record.Refuse(record.NoOwner, time.Second, "the node that owns %s has no address at which this one can ask it. "+
			"Advertise one there, or ask that node", name)
	}
	switch {
	case own:
		why = errOwnAddress
	case why == nil:
		why = errSilent
	}
	return record.Refuse(record.NoOwner, time.Second, "the node at %s owns %s, and does not answer this one: %s. Retry, or ask "+
		"that node. If it runs, make it advertise an address that this node reaches, and give this node a token that "+
		"it accepts",
		address, name, replies.OneLine(why.Error()))
}

// unknownOwner: the node at this address was asked for n positions, and may have issued them.
func unknownOwner(name, address string, n int64) *record.Refusal {
	return record.Refuse(record.Unknown, time.Second, "the owner of %s at %s has not answered, so values may be missing: %d. "+
		"Retry, or try another node", name, address, n)
}
