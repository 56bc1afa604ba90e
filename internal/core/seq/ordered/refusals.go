package ordered

import (
	"time"

	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// NotOwner refuses a request that another node has forwarded: this node does not have the ownership that the request
// names.
func NotOwner(name string) *record.Refusal {
	return record.Refuse(record.NotOwner, 0, "this node is not the owner of %s that the request names. Ask again", name)
}

// ownerUnreachable refuses a request because the owner gives this node no values. address is the owner's, "" for none.
// own says that this node has the same address. why is the owner's error, nil if it does not answer.
func ownerUnreachable(name, address string, own bool, why error) *record.Refusal {
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

// outcomeUnknown refuses a request that the owner at this address may have answered: it may have issued n values.
func outcomeUnknown(name, address string, n int64) *record.Refusal {
	return record.Refuse(record.Unknown, time.Second, "the owner of %s at %s has not answered, so values may be missing: %d. "+
		"Retry, or try another node", name, address, n)
}
