package poll

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/web"
	"github.com/flaked/flaked/internal/testkit/slots"
)

// A worker in `flaked status` has fields of ZooKeeper's record, and fields of the node's answer, which are all that
// --addr shows. Who adds a field must fill it in from each source that has it, and say here which these are.
func TestSourcesOfAWorkersFields(t *testing.T) {
	const neither, record, answer, both = "neither", "record", "answer", "both"
	sources := map[string]string{
		"Worker": both, "Name": both, "Address": record, "State": both, "Phase": both, "Term": both,
		"ClockOffsetMs": both, "ClockUncertaintyMs": both, "LeaseLeftMs": record, "LeaseEndsMs": record,
		"ReportAgeMs": both, "Version": both, "Node": both, "Host": record, "PID": record, "Confirmed": record,
		"HeartbeatMs": both, "Admin": record, "GrantedMs": record, "ReleasedBy": record,
		"Outcome": answer, "Says": answer, "Why": neither, // Why is for a node that does not answer
	}
	entry := slots.Live(7, 1200, func(e *coordinator.Entry) {
		e.Slot.Admin, e.Slot.ReleasedBy = "10.0.0.1:7610", "somebody@host"
	})
	recorded := health.AssessRecords("prod", slots.Cluster(), []coordinator.Entry{entry}, time.UnixMilli(slots.T0)).Workers[0]
	doc := web.Status{Node: node.Snapshot{
		Name: "ids-1", Node: "n1", Phase: node.Serving, Ready: true, Worker: new(7), Term: 2, Confirmed: true,
		ServedMs: 5, LeaseLeftMs: new(int64(60_000)), LeaseEndsMs: new(int64(slots.T0)),
		Clock:     node.ClockSnapshot{OffsetMs: new(-3.0), UncertaintyMs: new(2.0)},
		ZooKeeper: node.ZooKeeperSnapshot{OK: true, HeartbeatAgeMs: new(int64(400)), HeartbeatMs: 3000},
	}}
	doc.Version = "1.2.3"
	var said health.WorkerReport
	fillIn(&said, doc)
	a, b := reflect.ValueOf(recorded), reflect.ValueOf(said)
	for i := range a.NumField() {
		name, got := a.Type().Field(i).Name, neither
		switch inRecord, inAnswer := !a.Field(i).IsZero(), !b.Field(i).IsZero(); {
		case inRecord && inAnswer:
			got = both
		case inRecord:
			got = record
		case inAnswer:
			got = answer
		}
		if got != sources[name] {
			t.Errorf("%s is filled in from: %s, want %q. See describeWorker in health, and describe here", name, got,
				sources[name])
		}
	}
}

func TestStatusOfTwoClusters(t *testing.T) {
	a, b := node.ClusterSnapshot{Name: "prod", UUID: "u"}, node.ClusterSnapshot{Name: "prod", UUID: "v"}
	c, none := node.ClusterSnapshot{Name: "test", UUID: "w"}, node.ClusterSnapshot{}
	two := "the addresses belong to two clusters: h0 to prod (u) and h"
	for _, row := range []struct {
		name, wanted string
		clusters     []node.ClusterSnapshot
		failed       int // -1: none
		err          string
	}{
		{"one", "", []node.ClusterSnapshot{a, none, a}, -1, ""},
		{"two", "", []node.ClusterSnapshot{a, none, c}, -1, two + "2 to test (w)"},
		{"of the same name", "prod", []node.ClusterSnapshot{a, b}, -1, two + "1 to prod (v)"},
		{"by name", "prod", []node.ClusterSnapshot{a, c}, 1, ""},
		{"by UUID", "v", []node.ClusterSnapshot{a, b}, 0, ""},
	} {
		var found []health.WorkerReport
		for i := range row.clusters {
			found = append(found, health.WorkerReport{Address: "h" + string(rune('0'+i)), Says: &health.Answer{}})
		}
		err := compareClusters(row.wanted, found, row.clusters)
		if (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
		for i, w := range found {
			if (w.Says == nil) != (i == row.failed) || w.Says == nil && !strings.Contains(w.Why, "it belongs to cluster ") {
				t.Errorf("%s: node %d: %+v", row.name, i, w)
			}
		}
	}
}
