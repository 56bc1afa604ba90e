package seq

import (
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

func noSequence(name string) *record.Refusal {
	return record.Refuse(record.NoSequence, 0, "there is no sequence %s. Create it first", name)
}

func noRange(name string) *record.Refusal {
	return record.Refuse(record.WrongMode, 0,
		"the values of %s are salted or scattered, so no range of them exists. Use NEXT with a count", name)
}

func tooManyNames() *record.Refusal {
	return record.Refuse(record.TooManyNames, time.Second, "too many unknown sequences are asked for. Retry later")
}

// Texts for mode.NoBlock: why the node gives no values.
const (
	textUnreachable = "this node holds no values of the sequence, and ZooKeeper cannot be reached. " +
		"Retry, or try another node"
	textQuota = "this node holds no values of the sequence, and ZooKeeper gives none, because a quota is reached. " +
		"Raise the quota"
	textFailed = "this node holds no values of the sequence, and could not read or write what it needs in ZooKeeper. " +
		"The log of this node says why. Retry, or try another node"
	textHold = "ZooKeeper has not been reached since the machine booted, or for longer than this sequence allows. " +
		"Retry when it is back"
	textDisk = "the state directory of this node does not answer in time. Retry, or try another node"
)

// noBlockAfter is the refusal of requests that wait when ZooKeeper has failed with err.
func noBlockAfter(err error) *record.Refusal {
	switch {
	case errors.Is(err, store.ErrQuota):
		return mode.NoBlock(textQuota)
	case errors.Is(err, store.ErrUnreachable):
		return mode.NoBlock(textUnreachable)
	}
	return mode.NoBlock(textFailed)
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
