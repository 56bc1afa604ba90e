package client

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// namedSequence is the ids.Sequence of a Client. It holds no connection.
type namedSequence struct {
	pool  *pool
	name  string
	next  query
	stock *stock // nil without SequenceConfig.Prefetch
	err   error  // the name or the configuration is wrong
}

// SequenceConfig configures Client.SequenceWith.
type SequenceConfig struct {
	// Prefetch is how many values are requested in advance, so that Next need not wait: up to 100,000. 0 means none.
	// Values that the program has not used when it ends are lost. Values of several programs are not in the order of
	// the calls then, so do not prefetch from a strict or ordered sequence.
	Prefetch int
	// MaxAge is how long a prefetched value may be kept before it is discarded, from the moment when it was requested.
	// 0 means 1 second. At least 1 ms.
	MaxAge time.Duration
}

// Sequence returns the sequence with this name. A wrong name shows as an error of the first call. Its errors are those
// of Client.Next. If a node refuses, the error wraps an *ids.ReplyError, whose Reason says why. A refusal that another
// node or a moment may end (NOTREADY) is tried again, at another node first.
func (c *Client) Sequence(name string) ids.Sequence { return c.SequenceWith(name, SequenceConfig{}) }

// SequenceWith is Sequence with a configuration. A wrong configuration shows as an error of the first call, too.
func (c *Client) SequenceWith(name string, cfg SequenceConfig) ids.Sequence {
	s := &namedSequence{pool: c.values, name: name, next: query{verb: "NEXT " + name, name: name}}
	if cfg.MaxAge == 0 {
		cfg.MaxAge = defaultMaxAge
	}
	switch err := sequence.CheckName(name); {
	case err != nil:
		s.err = fmt.Errorf("client: %w", err)
	case cfg.Prefetch < 0 || cfg.Prefetch > maxPrefetch:
		s.err = fmt.Errorf("client: SequenceConfig.Prefetch is %d, must be 0 to %d", cfg.Prefetch, maxPrefetch)
	case cfg.MaxAge < time.Millisecond:
		s.err = fmt.Errorf("client: SequenceConfig.MaxAge is %v, must be at least 1ms", cfg.MaxAge)
	case cfg.Prefetch > 0:
		s.stock = &stock{size: cfg.Prefetch, maxAge: cfg.MaxAge}
	}
	return s
}

// Next is part of ids.Sequence.
func (s *namedSequence) Next(ctx context.Context) (int64, error) { return s.one(ctx, s.next, s.stock) }

func (s *namedSequence) one(ctx context.Context, q query, ahead *stock) (int64, error) {
	if s.err != nil {
		return 0, s.err
	}
	v, err := s.pool.next(ctx, q, ahead)
	return int64(v), err
}

func (s *namedSequence) fetch(ctx context.Context, q query, n int) (*call, error) {
	if err := cmp.Or(s.err, ctx.Err()); err != nil {
		return nil, err
	}
	return s.pool.fetch(ctx, q, n, nil)
}

// NextKeyed is part of ids.Sequence.
func (s *namedSequence) NextKeyed(ctx context.Context, key string) (int64, error) {
	if err := sequence.CheckKey(key); err != nil {
		return 0, fmt.Errorf("client: %w", err)
	}
	return s.one(ctx, query{s.next.verb + " " + key, s.name, true}, nil)
}

// Take is part of ids.Sequence.
func (s *namedSequence) Take(ctx context.Context, n int) ([]int64, error) {
	if n < 1 || n > ids.MaxTake {
		return nil, fmt.Errorf("client: Take(%d): n must be 1 to %d", n, ids.MaxTake)
	}
	k, err := s.fetch(ctx, s.next, n)
	if err != nil {
		return nil, err
	}
	all := make([]int64, n)
	for i, v := range k.numbers {
		all[i] = int64(v)
	}
	return all, nil
}

// Range is part of ids.Sequence.
func (s *namedSequence) Range(ctx context.Context, n int) (first, last int64, err error) {
	if n < 1 || n > ids.MaxTake {
		return 0, 0, fmt.Errorf("client: Range(%d): n must be 1 to %d", n, ids.MaxTake)
	}
	k, err := s.fetch(ctx, query{"RANGE " + s.name + " " + strconv.Itoa(n), s.name, true}, 2)
	if err != nil {
		return 0, 0, err
	}
	if wide := k.numbers[1] - k.numbers[0]; n == 1 && wide != 0 || n > 1 && (wide == 0 || wide%worker.ID(n-1) != 0) {
		return 0, 0, fmt.Errorf("client: RANGE %s %d: %d to %d: %w", s.name, n, k.numbers[0], k.numbers[1],
			dialog.ErrReply)
	}
	return int64(k.numbers[0]), int64(k.numbers[1]), nil
}
