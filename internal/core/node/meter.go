package node

import (
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/worker"
)

// CountsSnapshot counts what a node has done since the process started.
type CountsSnapshot struct {
	// Heartbeats were acknowledged, and HeartbeatsFailed failed. Both together have taken
	// HeartbeatsTookMs milliseconds.
	Heartbeats       int64   `json:"heartbeats"`
	HeartbeatsFailed int64   `json:"heartbeats_failed"`
	HeartbeatsTookMs float64 `json:"heartbeats_took_ms"`
	// DiskWrites records were saved to the state file, and DiskWritesFailed could not be saved, or not for the next
	// process: see Config.DirError. Both together have taken DiskWritesTookMs milliseconds.
	DiskWrites       int64   `json:"disk_writes"`
	DiskWritesFailed int64   `json:"disk_writes_failed"`
	DiskWritesTookMs float64 `json:"disk_writes_took_ms"`
	// TickWaits counts waits for the next tick, because the present one had no IDs left. RollbackWaits counts waits for
	// a clock that had gone back a little. A request that waits more than once counts each time. RollbackRefusals
	// counts requests that were refused because the clock had gone back further.
	TickWaits        int64 `json:"tick_waits"`
	RollbackWaits    int64 `json:"rollback_waits"`
	RollbackRefusals int64 `json:"rollback_refusals"`
}

// meter collects the figures of a CountsSnapshot. The zero value is ready.
type meter struct {
	heartbeats, disk tally
	worker           worker.Counts
}

// tally counts attempts that succeeded or failed, and adds up the time that they took.
type tally struct{ ok, failed, ns atomic.Int64 }

func (t *tally) add(took int64, err error) {
	if err != nil {
		t.failed.Add(1)
	} else {
		t.ok.Add(1)
	}
	t.ns.Add(took)
}

func (t *tally) tookMs() float64 { return float64(t.ns.Load()) / float64(time.Millisecond) }

func (m *meter) snapshot() CountsSnapshot {
	return CountsSnapshot{
		Heartbeats: m.heartbeats.ok.Load(), HeartbeatsFailed: m.heartbeats.failed.Load(),
		HeartbeatsTookMs: m.heartbeats.tookMs(),
		DiskWrites:       m.disk.ok.Load(), DiskWritesFailed: m.disk.failed.Load(), DiskWritesTookMs: m.disk.tookMs(),
		TickWaits: m.worker.TickWaits.Load(), RollbackWaits: m.worker.RollbackWaits.Load(),
		RollbackRefusals: m.worker.RollbackRefusals.Load(),
	}
}
