package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/lineproto"
)

var update = flag.Bool("update", false, "write what is printed to testdata")

// full returns a process with a value in every field of the status document.
func full() Config {
	events := new(Events)
	events.Accept("flaked.node", hclog.Warn, "clock offset is large", "worst_offset_ms", 612)
	for i := range events.last {
		events.last[i].AtMs = 1790000000000
	}
	return Config{
		Slots: func(context.Context) (health.Report, error) {
			return health.Report{Summary: health.Summary{Slots: 1024, Used: 3, Live: 3, Free: 1021}}, nil
		},
		Ready: func() error {
			return errors.New("-CLOCK the clock is behind the last ID behind_ms=9 " +
				"retry_after_ms=9")
		},
		Node:   fullNode,
		Issuer: knows{report: someSequences},
		Counters: func() lineproto.Counters {
			return lineproto.Counters{
				Durations: lineproto.Histogram{Bounds: []float64{0.5, 1}, N: []int64{120, 4, 1}, Sum: 60.25},
				Sizes:     lineproto.Histogram{Bounds: []float64{1, 4}, N: []int64{120, 2, 1}, Sum: 100123},
				ConnsOpen: 3, ConnsTotal: 40, ConnsRefused: 1, ConnsIdle: 2, ConnsSlow: 4, ConnsBadTLS: 5, IDs: 100123,
				Requests: []lineproto.RequestCount{{Command: "GET", Result: "OK", N: 123},
					{Command: "GET", Result: "CLOCK", N: 2}},
			}
		},
		Events: events,
		About: About{
			Version: "1.2.3", Name: "ids-1", Host: "h1", PID: 42, Listen: []string{"10.0.0.5:7609"},
			Admin: "127.0.0.1:7610", Cluster: "orders",
			StartedMs: 1789990000000,
		},
	}
}

// fullNode returns a node with a value in every field.
func fullNode() node.Snapshot {
	return node.Snapshot{
		Name: "ids-1", Worker: new(7), Term: 3, Node: "18b34979-0000-4000-8000-000000000000",
		Phase: node.Serving,
		Code:  "CLOCK", Cause: "clock-behind", Degraded: []string{"clock-offset", "clock-leap", "frozen"},
		FromCache: true,
		Reason:    "the clock is behind the last ID behind_ms=9 retry_after_ms=9",
		Confirmed: true, ServedMs: 3600000, LeaseLeftMs: new(int64(86400000)),
		LeaseEndsMs:    new(int64(1790086400001)),
		ReservedLeftMs: new(int64(2500)), FrozenUntilMs: new(int64(1790003600000)), NowMs: 1790000000001,
		Clock: node.ClockSnapshot{
			OffsetMs: new(-1.5), UncertaintyMs: new(2.0), WorstMs: new(612.0), WorstUncertaintyMs: new(3.5),
			Voters: 5, Against: 1, UnfollowedLeapMs: 4000, BehindMs: 9, CoastingMs: 700, BorrowedMs: 3,
			Rollbacks: 2,
		},
		ZooKeeper: node.ZooKeeperSnapshot{OK: true, Session: true, HeartbeatAgeMs: new(int64(812)),
			HeartbeatMs: 3000},
		Disk: node.DiskSnapshot{Error: "no space left on device"},
		Counts: node.CountsSnapshot{
			Heartbeats: 100, HeartbeatsFailed: 2, HeartbeatsTookMs: 512.5, DiskWrites: 300,
			DiskWritesFailed: 1, DiskWritesTookMs: 900.25,
			TickWaits: 11, RollbackWaits: 5, RollbackRefusals: 6,
		},
		Cluster: node.ClusterSnapshot{
			Name: "orders", UUID: "624812a4-0000-4000-8000-000000000000",
			Layout: "time=41@1ms,worker=10,sequence=12,epoch=2010-11-04T01:42:54.657Z",
			Slots:  1024, LeaseMs: 86400000, ConfirmMs: 12000, IDsEndMs: new(int64(3487858230209)),
		},
	}
}

// Scripts read this document, so its fields must not change. Fields may be added:
// go test ./internal/ops/web -update writes the file again.
func TestStatus(t *testing.T) {
	addr, _ := start(t, full())
	code, header, body := do(t, "GET", "http://"+addr+"/v1/status")
	if code != 200 || header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %v", code, header)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(body), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/status.json", indented.String())
	var back, line Status
	if err := json.Unmarshal([]byte(body), &back); err != nil {
		t.Errorf("it cannot be read back: %v", err)
	}
	text := New(whole(full())).StatusLine(false)
	if err := json.Unmarshal([]byte(text), &line); err != nil || strings.Contains(text, "\n") {
		t.Errorf("%v: %s", err, text)
	}
	if back.Events = []Event{}; !reflect.DeepEqual(line, back) {
		t.Errorf("STATUS says %+v, want %+v", line, back)
	}
}

// A node tells whom it has met only if asked: a list of a thousand is too much for what everybody polls.
func TestPeersAreOnlyInStatusPeers(t *testing.T) {
	cfg := full()
	cfg.Met = func() []coordinator.Peer { return []coordinator.Peer{{Node: "b", Worker: 1}} }
	s := New(whole(cfg))
	with, without := s.StatusLine(true), s.StatusLine(false)
	if got := s.Status().Peers; got != nil || !strings.Contains(with, `"peers":[{"node":"b","worker":1,`) ||
		strings.Contains(without, `"peers"`) {
		t.Errorf("%v, %s, %s", got, with, without)
	}
}

// Lists of a process that has just started are empty lists in JSON, not null.
func TestEmptyListsAreNotNullInStatus(t *testing.T) {
	text := New(whole(Config{Node: serving})).StatusLine(false)
	for _, want := range []string{`"listen":[]`, `"events":[]`, `"problems":[]`, `"sequences":null`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
