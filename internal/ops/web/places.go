package web

import (
	"context"
	"time"
)

const (
	// maxAnswers is how many requests are answered at once, probes not counted. It is low,
	// so that a node with two cores has time for probes. Further requests wait for up to
	// answersWait.
	maxAnswers  = 4
	answersWait = time.Second
	// maxWaits is how many requests may wait at once for something slow, such as
	// ZooKeeper.
	maxWaits = 8
)

// places limits how many requests do one thing at the same time. Its capacity is their number.
type places chan struct{}

// take takes a place, which the caller gives back by calling leave. It returns false if no place became free
// within answersWait.
func (p places) take(ctx context.Context) bool {
	select {
	case p <- struct{}{}:
		return true
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, answersWait)
	defer cancel()
	select {
	case p <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p places) leave() { <-p }
