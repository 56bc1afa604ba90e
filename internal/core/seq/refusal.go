package seq

import (
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

func noSequence(name string) *record.Refusal {
	return record.Refuse(record.NoSequence, 0, "there is no sequence %s. Create it first", name)
}

func noKeys(name string) *record.Refusal {
	return record.Refuse(record.WrongMode, 0, "keys are for strict sequences, and %s is not one. Leave the key out", name)
}

func noRange(name string) *record.Refusal {
	return record.Refuse(record.WrongMode, 0,
		"the values of %s are salted or scattered, so no range of them exists. Use NEXT with a count", name)
}

func tooMany(most int64, advice string) *record.Refusal {
	return record.Refuse(record.TooMany, 0, "the sequence gives at most %d values at once. Ask for fewer%s", most, advice)
}

func tooManyNames() *record.Refusal {
	return record.Refuse(record.TooManyNames, time.Second, "too many unknown sequences are asked for. Retry later")
}

func confirming(left time.Duration) *record.Refusal {
	return record.Refuse(record.Confirming, left,
		"this node reached ZooKeeper a short time ago, and ZooKeeper may have lost data. Retry, or try another node")
}

// The texts of noBlock say why the node has no positions.
const (
	textUnreachable = "this node holds no values of the sequence, and ZooKeeper cannot be reached. " +
		"Retry, or try another node"
	textQuota = "this node holds no values of the sequence, and ZooKeeper gives none, because a quota is reached. " +
		"Raise the quota"
	textHold     = "ZooKeeper has not been reached for longer than this sequence allows. Retry when it is back"
	textDisk     = "the state directory of this node does not answer in time. Retry, or try another node"
	textPatience = "ZooKeeper did not give this node any values in time. Retry, or try another node"
)

// noBlockAfter is the refusal of requests that wait when ZooKeeper has failed with err.
func noBlockAfter(err error) *record.Refusal {
	if errors.Is(err, store.ErrQuota) {
		return noBlock(textQuota)
	}
	return noBlock(textUnreachable)
}

func noBlock(why string) *record.Refusal {
	return record.Refuse(record.NoBlock, time.Second, "%s", why)
}

// unknown: n positions may have been taken for requests that nobody can answer any more.
func unknown(n int64, name string) *record.Refusal {
	return record.Refuse(record.Unknown, time.Second,
		"ZooKeeper has not answered in time, so values of %s may be missing: %d. Retry, or try another node", name, n)
}

func notOwner(name string) *record.Refusal {
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

// unknownOwner: the node at this address was asked for n positions, and may have counted them.
func unknownOwner(name, address string, n int64) *record.Refusal {
	return record.Refuse(record.Unknown, time.Second, "the owner of %s at %s has not answered, so values may be missing: %d. "+
		"Retry, or try another node", name, address, n)
}

func lostKey(name string) *record.Refusal {
	return record.Refuse(record.Frozen, 0, "the key of sequence %s is missing in ZooKeeper, and this node does not know it. "+
		"Start a node that does, or delete the sequence and create it again", name)
}

func damaged(name, path string) *record.Refusal {
	return record.Refuse(record.Frozen, 0, "sequence %s needs a record in ZooKeeper that is damaged. Restore or remove it: %s",
		name, path)
}

func unknownMode(name, path string) *record.Refusal {
	return record.Refuse(record.Frozen, 0, "sequence %s needs a record of a mode that this node does not know: %s. "+
		"Ask another node, or upgrade this one", name, path)
}
