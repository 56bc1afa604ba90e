package health

import (
	"reflect"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
)

// A worker in `flaked status` has fields of ZooKeeper's record, and fields of the node's answer, which are all that
// --addr shows. Who adds a field must fill it in from each source that has it, and say here which these are.
func TestSourcesOfAWorkersFields(t *testing.T) {
	const neither, record, answer, both = "neither", "record", "answer", "both"
	sources := map[string]string{
		"Worker": both, "Name": both, "Address": both, "State": both, "Phase": both, "Term": both,
		"ClockOffsetMs": both, "ClockUncertaintyMs": both, "LeaseLeftMs": record, "LeaseEndsMs": record,
		"ReportAgeMs": both, "Version": both, "Node": both, "Host": record, "PID": record, "Confirmed": record,
		"HeartbeatMs": both, "Admin": record, "GrantedMs": record, "ReleasedBy": record,
		"Outcome": answer, "Says": answer, "Why": neither, // Why is for a node that does not answer
	}
	entry := liveEntry(7, 1200, func(e *coordinator.Entry) {
		e.Slot.Admin, e.Slot.ReleasedBy = "10.0.0.1:7610", "somebody@host"
	})
	recorded := DraftOf("prod", exampleCluster(), []coordinator.Entry{entry}, local(t0)).Workers[0]
	snapshot := node.Snapshot{
		Name: "ids-1", Node: "n1", Phase: node.Serving, Ready: true, Worker: new(7), Term: 2, Confirmed: true,
		ServedMs: 5, LeaseLeftMs: new(int64(60_000)), LeaseEndsMs: new(int64(t0)),
		Clock:     node.ClockSnapshot{OffsetMs: new(-3.0), UncertaintyMs: new(2.0)},
		ZooKeeper: node.ZooKeeperSnapshot{OK: true, HeartbeatAgeMs: new(int64(400)), HeartbeatMs: 3000},
	}
	said := AskedNode{Address: "10.0.0.1:7609", Outcome: Answered, Says: NewAnswer(snapshot, 0), Snapshot: snapshot,
		Version: "1.2.3"}.worker()
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
			t.Errorf("%s is filled in from: %s, want %q. See recordedWorker and AskedNode.worker", name, got,
				sources[name])
		}
	}
}
