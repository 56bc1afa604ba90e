package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// testHosts resolves names by a table, which the test may change. "" means no such host.
func testHosts(names []string, table map[string]string) *zkHosts {
	h := newHosts(names)
	h.lookup = func(_ context.Context, host string) ([]string, error) {
		if table[host] == "" {
			return nil, errors.New("no such host")
		}
		return strings.Fields(table[host]), nil
	}
	return h
}

func labels(targets []zkTarget) (labels []string) {
	for _, t := range targets {
		labels = append(labels, t.label())
	}
	return labels
}

func wantSet(t *testing.T, got []string, want ...string) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHostsAreResolvedForEachRound(t *testing.T) {
	table := map[string]string{"a": "10.0.0.1 10.0.0.2", "b": "::1", "c": ""}
	h := testHosts([]string{"a:1", "b:2", "c:3"}, table)
	first := h.round(t.Context(), time.Second)
	wantSet(t, labels(first), "a:1(10.0.0.1:1)", "a:1(10.0.0.2:1)", "b:2([::1]:2)", "c:3")
	for _, target := range first {
		if (target.name == "c:3") != (target.err != nil) {
			t.Errorf("%s: %v", target.name, target.err)
		}
	}

	table["a"], table["b"], table["c"] = "10.0.0.9", "", "10.0.0.3" // moved, gone, come
	second := h.round(t.Context(), time.Second)
	wantSet(t, labels(second), "a:1(10.0.0.9:1)", "b:2([::1]:2)", "c:3(10.0.0.3:3)") // b keeps its old address
}

func TestHostsTryTheLostAddressLast(t *testing.T) {
	h := testHosts([]string{"a:1", "b:2", "c:3"}, map[string]string{"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"})
	for range 20 {
		h.last = h.round(t.Context(), time.Second)[0]
		got := h.round(t.Context(), time.Second)
		wantSet(t, labels(got), "a:1(10.0.0.1:1)", "b:2(10.0.0.2:2)", "c:3(10.0.0.3:3)")
		if got[2] != h.last {
			t.Errorf("%s was lost and is not the last of %q", h.last.label(), labels(got))
		}
	}
}

func TestSlowLookupKeepsTheOldAddress(t *testing.T) {
	h := testHosts([]string{"a:1"}, map[string]string{"a": "10.0.0.1"})
	wantSet(t, labels(h.round(t.Context(), time.Second)), "a:1(10.0.0.1:1)")
	h.lookup = func(ctx context.Context, _ string) ([]string, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	wantSet(t, labels(h.round(t.Context(), time.Millisecond)), "a:1(10.0.0.1:1)")
}
