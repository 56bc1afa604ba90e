package seq

import (
	"context"
	"errors"
	"testing"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/sequence"
)

// Requests that wait together share one request to the owner. If that one is too large, each is small enough alone.
func TestRequestsThatAreTooLargeTogether(t *testing.T) {
	asked, next := 0, int64(1)
	var flights []func()
	i := New(Config{
		Mono: func() int64 { return 1e9 }, Now: func() int64 { return 0 }, Address: "a:1",
		Pass: func(_ context.Context, _, _ string, n int64) (int64, error) {
			if asked++; n > 5 {
				return 0, replies.New(ids.NOTREADY, "reason=ceiling retry_after_ms=10 too much")
			}
			next += n
			return next - n, nil
		},
	})
	i.relay.beside = func(f func()) { flights = append(flights, f) }
	i.named("o").know(Record{
		ID: "1", Mode: Ordered, Map: sequence.Map{Start: 1, Increment: 1, Max: 100}, Owner: "z", Address: "b:1",
		Settings: Settings{Block: 32, HoldMs: 3000, Ceiling: 1000, HardCeiling: 1000},
	})
	var waits [3]sequence.Wait
	take := func(k int) (int64, error) {
		runs, err := i.Take(&waits[k], []byte("o"), 3, true, func() {}, nil)
		if err != nil {
			return 0, err
		}
		return int64(runs[0].First), nil
	}
	for k := range waits {
		if _, err := take(k); !errors.Is(err, sequence.ErrPending) {
			t.Fatalf("request %d: %v", k, err)
		}
	}
	flights[0]()
	for k, want := range []int64{1, 4, 7} {
		if v, err := take(k); v != want || err != nil {
			t.Errorf("request %d got %d, %v, want %d", k, v, err, want)
		}
	}
	if asked != 4 {
		t.Errorf("the owner was asked %d times, want once for all and once for each", asked)
	}
}
