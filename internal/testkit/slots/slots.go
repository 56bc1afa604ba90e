// Package slots has example records of workers. Tests of view's assessment and of the tables
// of `flaked status` use them.
package slots

import (
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// T0 is the leader's time in these tests, in Unix milliseconds.
const T0 = int64(1795196809000)

// Hour is an hour in milliseconds.
const Hour = int64(time.Hour / time.Millisecond)

// Cluster returns the record of a cluster with the default layout.
func Cluster() coordinator.Cluster {
	return coordinator.Cluster{
		UUID: "c1", Layout: "time=41@1ms,datacenter=0,worker=10,sequence=12,epoch=1288834974657",
		Slots: 1024, LeaseMs: 24 * Hour, ConfirmMs: 12_000, HighestSlot: 63, InUse: true,
	}
}

// Live returns a healthy worker whose record was written age ms ago.
func Live(worker int, age int64, change ...func(*coordinator.Entry)) coordinator.Entry {
	e := coordinator.Entry{
		Worker: worker, Live: true,
		Slot: coordinator.Slot{
			Node: "n1", Term: 3, Nonce: "x", LeaseUntil: T0 + Hour, Confirmed: true, ReportedClock: T0 - age + 1,
			HeartbeatMs: 3000, Phase: "serving",
			Labels:  coordinator.Labels{Name: "api", Host: "h1", PID: 42, Address: "10.0.0.1:7609", Version: "1.2.3"},
			Granted: 1795190000000,
		},
		Stat: store.Stat{Mtime: T0 - age, Mzxid: 1 << 32, Version: 9},
	}
	for _, f := range change {
		f(&e)
	}
	return e
}

// Dead takes a worker's live lock away.
func Dead(e *coordinator.Entry) { e.Live = false }

// Expired ends a worker's lease 5 s before T0.
func Expired(e *coordinator.Entry) { e.Slot.LeaseUntil = T0 - 5000 }

// Stopped makes a worker's holder stop cleanly.
func Stopped(e *coordinator.Entry) { e.Live, e.Slot.Stopped, e.Slot.Phase = false, true, "stopped" }

// Released makes a worker's holder release it.
func Released(e *coordinator.Entry) {
	e.Live, e.Slot.Released, e.Slot.Phase = false, true, "released"
}
