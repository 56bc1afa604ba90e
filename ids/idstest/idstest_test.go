package idstest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/flaked/flaked/ids"
)

// Calls with a key that the Source knows fail as all others do.
func TestKnownKeysFailAndAreTakenOnce(t *testing.T) {
	s := New()
	q := s.Sequence("invoice")
	var calling sync.WaitGroup
	for range 8 {
		calling.Go(func() {
			if v, err := q.NextKeyed(t.Context(), "a"); v != 1 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		})
	}
	calling.Wait()
	if v, err := q.Next(t.Context()); v != 2 || err != nil {
		t.Errorf("after calls with one key: %d, %v", v, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := q.NextKeyed(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done: %d, %v", v, err)
	}
	s.Fail(ids.Unavailable(nil, nil))
	if v, err := q.NextKeyed(t.Context(), "a"); !errors.Is(err, ids.ErrUnavailable) {
		t.Errorf("after Fail: %d, %v", v, err)
	}
}
