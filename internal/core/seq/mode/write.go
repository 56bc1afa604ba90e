package mode

import (
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// Write is the write of a mode, with what the node knows of it.
type Write struct {
	record.Write
	Requests    []Request           // that it answers
	RequestKeys *record.RequestKeys // as the write leaves them, nil if it does not write them
	// Renews: the owner of an ordered sequence makes the write, in this Session. It may before the node may take
	// positions.
	Renews  bool
	Session int64
}

// ErrNotSent: a write was not sent, because the node may not take positions now.
var ErrNotSent = errors.New("the write was not sent")

// NotMade reports whether it is certain that a write was not made, although ZooKeeper can be reached.
func NotMade(err error) bool { return errors.Is(err, ErrNotSent) || store.Outpaced(err) }

// Backoff returns the longest pause after so many conflicts. If a thousand nodes ask for one name at once, each success
// of one makes all others fail, so that they must not all try again at once.
func Backoff(conflicts int) time.Duration { return 10 * time.Millisecond << min(conflicts, 7) }

// After returns what a write of the record of v leaves in ZooKeeper.
func (v View) After(t Write) View {
	version := v.Stat.Version + 1
	if version == store.AnyVersion { // two writes were needed: see record.SetOps
		version++
	}
	v.Record, v.Stat, v.MapKey = &t.Record, store.Stat{Version: version}, nil
	if t.RequestKeys != nil {
		v.RequestKeys = t.RequestKeys.Written()
	}
	return v
}
