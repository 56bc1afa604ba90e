package mode

import (
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// Write is a write that a mode wants, and the requests that it answers.
type Write struct {
	record.Write
	Requests    []Request           // those of a strict sequence
	RequestKeys *record.RequestKeys // as the write leaves them, nil if it does not write them
	// Renews: this node owns the ordered sequence, and the write keeps or ends that. If it keeps that and takes no
	// block, it may be made before the node may take positions. Session is the session in which any write of an ordered
	// sequence is made.
	Renews  bool
	Session int64
}

// ErrNotSent: a write was not sent, because the node may not take positions now.
var ErrNotSent = errors.New("the write was not sent")

// NotMade reports whether a write that ended with err was certainly not made, although ZooKeeper can be reached: it was
// not sent, or another write was faster.
func NotMade(err error) bool { return errors.Is(err, ErrNotSent) || store.Outpaced(err) }

// Backoff returns the longest pause after so many conflicts. If a thousand nodes ask for one name at once, each success
// of one makes all others fail, so that they must not all try again at once.
func Backoff(conflicts int) time.Duration { return 10 * time.Millisecond << min(conflicts, 7) }

// After returns v as the write w leaves the records in ZooKeeper.
func (v View) After(w Write) View {
	version := v.Stat.Version + 1
	if version == store.AnyVersion { // two writes were needed: see record.SetOps
		version++
	}
	v.Record, v.Stat, v.MapKey = &w.Record, store.Stat{Version: version}, nil
	if w.RequestKeys != nil {
		v.RequestKeys = w.RequestKeys.AfterWrite()
	}
	return v
}
