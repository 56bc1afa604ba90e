package mode

import (
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
)

// Confirming refuses requests for this time, because ZooKeeper may have lost data.
func Confirming(left time.Duration) *record.Refusal {
	return record.Refuse(record.Confirming, left,
		"this node reached ZooKeeper a short time ago, and ZooKeeper may have lost data. Retry, or try another node")
}

// NoKeys refuses a request with a key.
func NoKeys(name string) *record.Refusal {
	return record.Refuse(record.WrongMode, 0, "keys are for strict sequences, and %s is not one. Leave the key out", name)
}

// TooMany refuses a request for more than most values. advice says what else helps.
func TooMany(most int64, advice string) *record.Refusal {
	return record.Refuse(record.TooMany, 0, "the sequence gives at most %d values at once. Ask for fewer%s", most, advice)
}

// textPatience is the reply to a request that has waited for ZooKeeper for too long.
const textPatience = "ZooKeeper did not give this node any values in time. Retry, or try another node"

// NoBlock refuses requests, because the node has no positions. why says why.
func NoBlock(why string) *record.Refusal {
	return record.Refuse(record.NoBlock, time.Second, "%s", why)
}
