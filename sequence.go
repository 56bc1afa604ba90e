package flaked

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// Sequence returns the sequence with this name, which an operator must have created. Its calls
// take values from a block that the node holds, and wait for ZooKeeper when the block is used up.
// Each call of a strict sequence waits for ZooKeeper. See docs/sequences.md.
//
// A node that starts again goes on with the values that it held. After a first start, or after more than two
// heartbeats without ZooKeeper, it takes no further ones for the cluster's confirming time, 12 s by default. A
// call waits for that, and for other refusals that may pass, until ctx is done. Without a deadline it waits for 5 s,
// so give the first call a longer one. The error then wraps ids.ErrUnavailable. If the sequence
// refuses until an operator acts, because it does not exist or is exhausted, the call is not retried.
// It returns an *ids.ReplyError that does not wrap ids.ErrUnavailable.
//
// Another node may own an ordered sequence. Set Config.PeerAccess if the nodes ask for a token or use TLS. If the owner
// has not answered (reason=unknown), the call is not retried.
func (n *Node) Sequence(name string) ids.Sequence {
	s := &namedSequence{n: n, name: []byte(name)}
	if err := sequence.CheckName(name); err != nil {
		s.err = fmt.Errorf("flaked: %w", err)
	}
	return s
}

// namedSequence is the ids.Sequence of a Node.
type namedSequence struct {
	n    *Node
	name []byte
	err  error // the name is wrong
}

func (s *namedSequence) Next(ctx context.Context) (int64, error) {
	runs, err := s.take(ctx, 1, false, "")
	if err != nil {
		return 0, err
	}
	return int64(runs[0].First), nil
}

func (s *namedSequence) NextKeyed(ctx context.Context, key string) (int64, error) {
	if err := sequence.CheckKey(key); err != nil {
		return 0, fmt.Errorf("flaked: %w", err)
	}
	runs, err := s.take(ctx, 1, false, key)
	if err != nil {
		return 0, err
	}
	return int64(runs[0].First), nil
}

// part is the most values that Take asks for at once. It is the most of one request of the line
// protocol, too.
const part = 10_000

func (s *namedSequence) Take(ctx context.Context, n int) ([]int64, error) {
	if err := checkCount("Take", n); err != nil {
		return nil, err
	}
	all := make([]int64, 0, n)
	for len(all) < n {
		runs, err := s.take(ctx, min(n-len(all), part), false, "")
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			for i := range run.Len {
				all = append(all, int64(run.At(i)))
			}
		}
	}
	return all, nil
}

func (s *namedSequence) Range(ctx context.Context, n int) (first, last int64, err error) {
	if err := checkCount("Range", n); err != nil {
		return 0, 0, err
	}
	runs, err := s.take(ctx, n, true, "")
	if err != nil {
		return 0, 0, err
	}
	end := runs[len(runs)-1]
	return int64(runs[0].First), int64(end.At(end.Len - 1)), nil
}

// patience is how long a call tries again whose context has no deadline, as in package client.
const patience = 5 * time.Second

// take takes n values. A refusal that may pass (NOTREADY) is tried again, unless the deadline comes
// first.
func (s *namedSequence) take(ctx context.Context, n int, whole bool, key string) ([]worker.Run, error) {
	switch {
	case s.err != nil:
		return nil, s.err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(patience)
	}
	var last error // the refusal that was tried again
	for {
		runs, err := s.n.app().TakeValues(ctx, s.name, n, whole, key)
		e, refused := errors.AsType[*ids.ReplyError](err)
		switch {
		case err == nil:
			return runs, nil
		case s.n.reason() != nil:
			return nil, s.n.refused(ctx, nil)
		case !refused:
			return nil, ids.Unavailable(err, last)
		case e.Code != ids.NOTREADY:
			return nil, e
		case e.Reason() == string(record.Unknown) && s.isOrdered(): // the program decides whether it asks again
			return nil, ids.Unavailable(nil, e)
		}
		again := min(max(e.RetryAfter(), 25*time.Millisecond), time.Second)
		if time.Now().Add(again).After(deadline) {
			return nil, ids.Unavailable(nil, e)
		}
		select {
		case <-time.After(again):
		case <-s.n.app().Ending():
			return nil, s.n.refused(ctx, nil)
		case <-ctx.Done():
			return nil, ids.Unavailable(ctx.Err(), e)
		}
		last = e
	}
}

func (s *namedSequence) isOrdered() bool {
	u, ok := s.n.app().Issuer().Use(string(s.name))
	return ok && u.Record.Mode == record.Ordered
}
