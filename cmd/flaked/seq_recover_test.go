package main

import (
	"strings"
	"testing"
)

// frozenSequence returns a cluster with a frozen strict sequence, of which ZooKeeper knows the values up to 99.
func frozenSequence(t *testing.T) *seqWorld {
	w := newSeqWorld(t)
	w.call("create", "order", "--mode", "strict").wants(t, exitOK, "created", "")
	w.taken("order", 100)
	w.losesData()
	return w
}

func TestSeqRecover(t *testing.T) {
	w := frozenSequence(t)
	knows := fakeNode(t, "tcp", "127.0.0.1:0", says("name=order mode=strict start=1 increment=1 max=9007199254740991 "+
		"used_percent=0.0 taken=1234 unanswered=0\n"))
	other := fakeNode(t, "tcp", "127.0.0.1:0", says("name=order mode=strict start=7 increment=1 max=9007199254740991 "+
		"used_percent=0.0 taken=999999 unanswered=0\n"))
	none := fakeNode(t, "tcp", "127.0.0.1:0", says("-ERR reason=no-sequence there is no sequence order\n"))
	addrs := []string{"recover", "order", "--addr", knows, "--addr", other, "--addr", none, "--addr", "127.0.0.1:1"}
	words := "order is unused from 1359 on in incarnation 1" // 1234, 124 more, and the next one
	r := w.call(addrs...)
	r.wants(t, exitUsage, "The highest known value is 1234. The sequence can go on at 1359.\n", "--confirm '"+words+"'")
	for _, text := range []string{"ZooKeeper", "another sequence with this name", "it does not know the sequence",
		"connection refused", "2 nodes did not answer, and may have issued higher values"} {
		if !strings.Contains(r.stdout, text) {
			t.Errorf("%q is missing in:\n%s", text, r.stdout)
		}
	}
	if r, _ := w.show("order"); r.Incarnation != 0 {
		t.Errorf("changed without a confirmation: %+v", r)
	}
	w.call(append(addrs, "--confirm", words)...).wants(t, exitOK, "changed sequence order", "")
	if r, st := w.show("order"); r.Incarnation != st.Incarnation || r.Value(r.Next) != 1359 || r.From != r.Next {
		t.Errorf("%+v", r)
	}
	w.call("recover", "order").wants(t, exitFailure, "", "order is not frozen")
}

func TestMarginIsATenthRoundedUpAndTenAtLeast(t *testing.T) {
	for taken, want := range map[int64]int64{0: 10, 1: 10, 100: 10, 101: 11, 109: 11, 110: 11, 111: 12,
		1_000_000: 100_000, 1<<63 - 1: 1<<63/10 + 1} {
		if got := margin(taken); got != want {
			t.Errorf("%d: %d, not %d", taken, got, want)
		}
	}
}
