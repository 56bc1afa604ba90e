package coordinator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// testHosts looks names up in a table, which the test may change; "" is none.
func testHosts(ctx context.Context, names []string, table map[string]string) *zkHosts {
	return &zkHosts{
		ctx:     ctx,
		names:   names,
		timeout: time.Second,
		known:   make(map[string][]string),
		lookup: func(_ context.Context, host string) ([]string, error) {
			if table[host] == "" {
				return nil, errors.New("no such host")
			}
			return strings.Fields(table[host]), nil
		},
	}
}

// round asks for n servers, and whether there was to be a pause before the
// first; before any other there must be none.
func round(t *testing.T, h *zkHosts, n int) (labels []string, pause bool) {
	t.Helper()
	for i := range n {
		label, p := h.Next()
		if i == 0 {
			pause = p
		} else if p {
			t.Errorf("a pause before server %d of a round", i)
		}
		if label != h.current.label() {
			t.Errorf("label %q for %+v", label, h.current)
		}
		labels = append(labels, label)
	}
	return labels, pause
}

func wantSet(t *testing.T, got []string, want ...string) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHostsRounds(t *testing.T) {
	table := map[string]string{"a": "10.0.0.1 10.0.0.2", "b": "::1", "c": ""}
	h := testHosts(t.Context(), []string{"a:1", "b:2", "c:3"}, table)
	if err := h.Init(nil); err != nil || h.Len() != 3 {
		t.Errorf("%v, %d servers", err, h.Len())
	}
	got, pause := round(t, h, 4)
	wantSet(t, got, "a:1(10.0.0.1:1)", "a:1(10.0.0.2:1)", "b:2([::1]:2)", "c:3")
	if pause {
		t.Error("a pause before the first round")
	}

	table["a"], table["b"], table["c"] = "10.0.0.9", "", "10.0.0.3" // moved, gone, come
	got, pause = round(t, h, 3)
	wantSet(t, got, "a:1(10.0.0.9:1)", "b:2([::1]:2)", "c:3(10.0.0.3:3)") // b's old address may do
	if !pause {
		t.Error("no pause between rounds without a connection")
	}
}

func TestHostsAfterAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHosts(t.Context(), []string{"a:1", "b:2", "c:3"}, map[string]string{"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"})
		for range 20 {
			lost, _ := h.Next()
			h.Connected()
			time.Sleep(2 * shortLived)
			got, pause := round(t, h, 3) // a whole round, though the last was not over
			if pause {
				t.Error("a pause after a connection that has lasted")
			}
			wantSet(t, got, "a:1(10.0.0.1:1)", "b:2(10.0.0.2:2)", "c:3(10.0.0.3:3)")
			if got[2] != lost {
				t.Errorf("%s was lost and is not the last of %q", lost, got)
			}
			h.Connected()
			time.Sleep(shortLived / 2)
			if _, pause := round(t, h, 3); !pause {
				t.Error("no pause after a connection that has not lasted")
			}
		}
	})
}

func TestHostsShuffle(t *testing.T) {
	first := make(map[string]bool)
	for range 200 {
		h := testHosts(t.Context(), []string{"a:1", "b:1"}, map[string]string{"a": "10.0.0.1", "b": "10.0.0.2"})
		label, _ := h.Next()
		first[label] = true
	}
	if len(first) != 2 {
		t.Errorf("always first: %v", first)
	}
}

func TestHostsClosed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := testHosts(ctx, []string{"a:1", "b:1"}, nil)
	cancel()
	for range 3 {
		if _, pause := h.Next(); !pause {
			t.Fatal("the library cannot see that it has been closed")
		}
	}
}
