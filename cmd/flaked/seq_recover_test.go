package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/web"
)

func TestMarginIsATenthRoundedUpAndTenAtLeast(t *testing.T) {
	for taken, want := range map[int64]int64{0: 10, 1: 10, 100: 10, 101: 11, 109: 11, 110: 11, 111: 12,
		1_000_000: 100_000, 1<<63 - 1: 1<<63/10 + 1} {
		if got := margin(taken); got != want {
			t.Errorf("%d: %d, not %d", taken, got, want)
		}
	}
}

func TestWorkersText(t *testing.T) {
	for want, workers := range map[string][]int{"worker 3": {3}, "workers 1-2": {1, 2}, "workers 0, 2-4, 7": {0, 2, 3, 4, 7}} {
		if got := workersText(workers); got != want {
			t.Errorf("%v: %q, want %q", workers, got, want)
		}
	}
}

// ZooKeeper has lost the record of a node that runs. Another node has met it, so it is asked. What nobody could ask is
// in the words that confirm the command.
func TestRecoverAsksNodesThatOthersHaveMet(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "invoice", "--mode", "strict").wants(t, exitOK, "created", "")
	fake := func(taken int64, worker int, peers ...coordinator.Peer) string {
		return fakeNode(t, "tcp", "127.0.0.1:0", func(line string) string {
			if line != "STATUS" {
				return fmt.Sprintf("name=invoice mode=strict start=1 increment=1 taken=%d\n", taken)
			}
			doc, err := json.Marshal(web.Status{Peers: peers, Node: node.Snapshot{Phase: node.Serving, Worker: &worker}})
			if err != nil {
				t.Error(err)
			}
			return string(doc) + "\n"
		})
	}
	host, _ := os.Hostname()
	forgotten := fake(53, 1)
	knows := fake(2, 0, coordinator.Peer{Name: "b", Address: forgotten, Host: host},
		coordinator.Peer{Name: "gone", Address: nobody, Host: host})
	cl, err := coordinator.PeekCluster(t.Context(), w.store)
	if err != nil {
		t.Fatal(err)
	}
	cl.HighestSlot = 3
	put(t, w.store, "/cluster", cl, false)
	put(t, w.store, coordinator.SlotPath(0), coordinator.Slot{Node: "n", Nonce: "x", Term: 1, Confirmed: true,
		LeaseUntil: time.Now().Add(time.Hour).UnixMilli(),
		Labels:     coordinator.Labels{Name: "a", Address: knows, Host: host}}, true)
	for worker := 1; worker <= 3; worker++ {
		put(t, w.store, coordinator.SlotPath(worker), coordinator.Slot{Lost: true,
			LeaseUntil: time.Now().Add(time.Hour).UnixMilli()}, true)
	}
	w.losesData()
	words := "invoice is unused from 64 on in incarnation 1, also by gone 127.0.0.1:1, the holders of the missing " +
		"workers 2-3"
	w.call("recover", "invoice").wants(t, exitUsage, "lost the records of workers 2-3", words)
	w.call("recover", "invoice", "--confirm", "invoice is unused from 64 on in incarnation 1").wants(t, exitUsage,
		"KNOWN BY", "does not match")
	w.call("recover", "invoice", "--confirm", words).wants(t, exitOK, "changed sequence", "")
}
