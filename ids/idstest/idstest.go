// Package idstest has a Source for tests of programs that take an ids.Source:
//
//	source := idstest.New() // IDs 1, 2, 3, ...
//	source.SetNext("order", 41)
//	shop := newShop(source) // the code to test
//	...
//	source.Fail(ids.Unavailable(nil, &ids.ReplyError{Code: "NOTREADY", Text: "a test"}))
package idstest

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// Source is an ids.Source in memory, without a node. Its IDs and the values of all its sequences
// count from 1. Any number of goroutines may use it at once. The zero Source is ready for use.
type Source struct {
	mu   sync.Mutex // guards what follows
	last map[string]int64
	keys map[string]int64 // by sequence, blank and key
	err  error
}

var _ ids.Source = (*Source)(nil)

// New returns a Source whose first ID is 1.
func New() *Source { return new(Source) }

// Fail makes every call fail with err until Fail(nil) is called. ids.Unavailable makes an error
// like those of a node that refuses.
func (s *Source) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// SetNext makes v the next value of the sequence with this name. If name is empty, v is the next
// ID.
func (s *Source) SetNext(name string, v int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(name, v-1)
}

func (s *Source) set(name string, last int64) {
	if s.last == nil {
		s.last, s.keys = make(map[string]int64), make(map[string]int64)
	}
	s.last[name] = last
}

// take returns the first of n new values, which follow each other, or the value that belongs to a key.
func (s *Source) take(ctx context.Context, name, key string, n int) (first int64, err error) {
	if n < 1 || n > ids.MaxTake {
		return 0, fmt.Errorf("idstest: the count %d must be 1 to %d", n, ids.MaxTake)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(ctx.Err(), s.err); err != nil {
		return 0, err
	}
	of := name + " " + key
	if v, known := s.keys[of]; known {
		return v, nil
	}
	first = s.last[name] + 1
	s.set(name, s.last[name]+int64(n))
	if key != "" {
		s.keys[of] = first
	}
	return first, nil
}

// Next is part of ids.Source.
func (s *Source) Next(ctx context.Context) (worker.ID, error) {
	id, err := s.take(ctx, "", "", 1)
	return worker.ID(id), err
}

// Take is part of ids.Source.
func (s *Source) Take(ctx context.Context, n int) ([]worker.ID, error) {
	first, err := s.take(ctx, "", "", n)
	if err != nil {
		return nil, err
	}
	all := make([]worker.ID, n)
	for i := range all {
		all[i] = worker.ID(first + int64(i))
	}
	return all, nil
}

// Sequence is part of ids.Source. Every name is a strict sequence.
func (s *Source) Sequence(name string) ids.Sequence { return &named{s, name} }

// named is a sequence of a Source.
type named struct {
	s    *Source
	name string
}

func (q *named) Next(ctx context.Context) (int64, error) {
	first, _, err := q.Range(ctx, 1)
	return first, err
}

func (q *named) Take(ctx context.Context, n int) ([]int64, error) {
	first, last, err := q.Range(ctx, n)
	if err != nil {
		return nil, err
	}
	all := make([]int64, 0, n)
	for v := first; v <= last; v++ {
		all = append(all, v)
	}
	return all, nil
}

func (q *named) Range(ctx context.Context, n int) (first, last int64, err error) {
	if err := sequence.CheckName(q.name); err != nil {
		return 0, 0, err
	}
	first, err = q.s.take(ctx, q.name, "", n)
	if err != nil {
		return 0, 0, err
	}
	return first, first + int64(n) - 1, nil
}

func (q *named) NextKeyed(ctx context.Context, key string) (int64, error) {
	if err := sequence.CheckKey(key); err != nil {
		return 0, err
	}
	if err := sequence.CheckName(q.name); err != nil {
		return 0, err
	}
	return q.s.take(ctx, q.name, key, 1)
}
