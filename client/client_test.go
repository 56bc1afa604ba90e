package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flaked/flaked/internal/testkit/await"
	"github.com/flaked/flaked/worker"
)

// clients/cases.jsonl says what each client must do, in every language. The tests in internal/check/clients play these
// cases with this package, too. The tests here have the rest: what is in this package alone, and many goroutines at
// once.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nodes starts n fake nodes. The IDs of node i begin after i << 40.
func nodes(t *testing.T, n int) (servers []*FakeNode, addrs []string) {
	t.Helper()
	for i := range n {
		s := NewFakeNode()
		t.Cleanup(s.Stop)
		s.SetLast(worker.ID(i) << 40)
		servers, addrs = append(servers, s), append(addrs, s.Addr)
	}
	return servers, addrs
}

// open makes a client that is closed when the test ends.
func open(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// by returns a context for one call, with a deadline after d.
func by(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

const long = 30 * time.Second

var until = await.Until

// A hundred goroutines call Next at the same time, repeatedly.
func TestCallsAreCoalesced(t *testing.T) {
	servers, addrs := nodes(t, 1)
	servers[0].Delay(time.Millisecond)
	c := open(t, Config{Addrs: addrs})
	ctx := by(t, long)
	const callers, each = 100, 20
	var wg sync.WaitGroup
	all := make([][]worker.ID, callers)
	for i := range callers {
		wg.Go(func() {
			for range each {
				id, err := c.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				all[i] = append(all[i], id)
			}
		})
	}
	wg.Wait()
	unique(t, all...)
	for _, ids := range all {
		if !slices.IsSorted(ids) {
			t.Errorf("IDs of one caller do not grow: %v", ids)
		}
	}
	requests := servers[0].Counts().requests
	t.Logf("%d calls, %d requests", callers*each, requests)
	if requests > callers*each/4 || servers[0].Counts().ids != callers*each {
		t.Errorf("%d requests, %d IDs for %d calls", requests, servers[0].Counts().ids, callers*each)
	}
}

func unique(t *testing.T, all ...[]worker.ID) {
	t.Helper()
	seen := make(map[worker.ID]bool)
	for _, ids := range all {
		for _, id := range ids {
			if seen[id] || id <= 0 {
				t.Fatalf("%d is no ID, or came twice", id)
			}
			seen[id] = true
		}
	}
}

func TestSpread(t *testing.T) {
	servers, addrs := nodes(t, 3)
	c := open(t, Config{Addrs: addrs, Spread: true})
	for range 30 {
		if _, err := c.Next(by(t, long)); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range servers {
		if s.Counts().requests != 10 {
			t.Errorf("node %d was asked %d times", i, s.Counts().requests)
		}
	}
}

// Callers that stop waiting cause gaps in the IDs, but no errors and no duplicates.
func TestAbandonedCallsCauseNoDuplicates(t *testing.T) {
	servers, addrs := nodes(t, 1)
	servers[0].Delay(time.Millisecond)
	c := open(t, Config{Addrs: addrs, Timeout: long})
	var wg sync.WaitGroup
	all := make([][]worker.ID, 16)
	var left, answered atomic.Int64
	for i := range all {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for n := range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(4000))*time.Microsecond)
				ids, err := c.Take(ctx, 1+n%3)
				cancel()
				switch {
				case err == nil:
					answered.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					left.Add(1)
				default:
					t.Error(err)
				}
				all[i] = append(all[i], ids...)
			}
		})
	}
	wg.Wait()
	last, err := c.Take(by(t, long), 5)
	if err != nil {
		t.Fatal(err)
	}
	unique(t, append(all, last)...)
	t.Logf("%d answered, %d left", answered.Load(), left.Load())
	if answered.Load() == 0 || left.Load() == 0 {
		t.Error("that was no test")
	}
}

// A Take of many requests does not deadlock on full buffers. It may take longer than
// Timeout, which applies to each window of requests.
func TestLongTake(t *testing.T) {
	servers, addrs := nodes(t, 1)
	servers[0].Delay(time.Millisecond)
	c := open(t, Config{Addrs: addrs, MaxBatch: 1, Timeout: 200 * time.Millisecond})
	ids, err := c.Take(by(t, long), 500)
	if err != nil {
		t.Fatal(err)
	}
	unique(t, ids)
	c2 := open(t, Config{Addrs: addrs})
	if ids, err = c2.Take(by(t, long), 100_000); err != nil {
		t.Fatal(err)
	}
	unique(t, ids)
}

func TestConfig(t *testing.T) {
	for _, row := range []struct {
		name, err string
		cfg       Config
	}{
		{"zero", "", Config{}},
		{"addresses", "", Config{Addrs: []string{"unix:/x", "host", "host:1", "[::1]:7", "::1"}}},
		{"no port", "not a port", Config{Addrs: []string{"host:1", "host:99999"}}},
		{"relative socket", "must begin with /", Config{Addrs: []string{"unix:x"}}},
		{"empty address", "not HOST:PORT", Config{Addrs: []string{""}}},
		{"connections", "Conns is 65", Config{Conns: 65}},
		{"negative", "Prefetch is -1", Config{Prefetch: -1}},
		{"batch", "MaxBatch is 10001", Config{MaxBatch: 10_001}},
		{"seconds as a bare number", "Timeout is 3ns", Config{Timeout: 3}},
		{"token", "Token must be 1 to 256 printable characters without blanks", Config{Token: "a b"}},
	} {
		c, err := New(row.cfg)
		if (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
		if err == nil {
			c.Close()
		}
	}
}
