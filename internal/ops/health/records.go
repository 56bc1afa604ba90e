package health

import (
	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/node"
)

// CountWorkers returns how many workers are in each state at the moment now, in Unix milliseconds.
func CountWorkers(cl coordinator.Cluster, entries []coordinator.Entry, now int64) Summary {
	n := make(map[WorkerState]int)
	for _, e := range entries {
		n[stateOf(cl, e, now)]++
	}
	s := Summary{
		Slots: cl.Slots, Held: n[Live] + n[Disconnected] + n[Stopped], NowMs: now,
		Live: n[Live], Disconnected: n[Disconnected], Stopped: n[Stopped], Releasing: n[Releasing],
		RecordMissing: n[RecordMissing],
	}
	s.Free = s.Slots - s.Held - s.Releasing - s.RecordMissing
	return s
}

// presentTime returns the time from which ages and leases are counted. It is this machine's clock, but never before the
// newest of the leader's timestamps. While a node is live, the newest timestamp is no older than ReportPatience allows.
// If it is older by this clock, the clock is ahead or the node has stopped reporting. presentTime then returns the
// timestamp, and the difference as suspectMs. All times are in milliseconds.
func presentTime(entries []coordinator.Entry, local int64) (now, suspectMs int64) {
	var newest, patience int64
	live := false
	for _, e := range entries {
		newest = max(newest, e.Stat.Mtime)
		if e.Live && !e.Missing && e.Slot.Term > 0 {
			live = true
			patience = max(patience, ReportPatience(e.Slot.HeartbeatMs))
		}
	}
	switch {
	case local < newest:
		return newest, 0
	case live && local > newest+patience:
		return newest, local - newest
	}
	return local, 0
}

// ReportPatience returns how old the report of a live worker may be, in milliseconds: three heartbeats, as for a vote
// on clocks, and a second for a reconnect. A heartbeat of 0 stands for the default.
func ReportPatience(heartbeat int64) int64 {
	if heartbeat <= 0 {
		heartbeat = limits.DefaultHeartbeat.Milliseconds()
	}
	return 3*heartbeat + 1000
}

func stateOf(cl coordinator.Cluster, e coordinator.Entry, now int64) WorkerState {
	availability := cl.Availability(e.Slot, e.Live, now, now)
	switch {
	case e.Missing || e.Slot.Term < 0:
		return RecordMissing // an unreadable record says as little as none
	case e.Slot.StandsIn && availability != coordinator.Free && !e.Live:
		return RecordMissing
	}
	return stateNames[availability]
}

var stateNames = map[coordinator.Availability]WorkerState{
	coordinator.Free: Free, coordinator.Releasing: Releasing, coordinator.Live: Live,
	coordinator.Stopped: Stopped, coordinator.Disconnected: Disconnected,
}

// recordedWorker returns the report of a worker by its record. epoch is the leader's epoch. For now and suspect, see
// presentTime.
func recordedWorker(e coordinator.Entry, state WorkerState, now, suspect, epoch int64) WorkerReport {
	s := e.Slot
	w := WorkerReport{
		Worker: e.Worker, Name: s.Name, Address: s.Address, State: state, Phase: node.Phase(s.Phase),
		Term: max(0, s.Term), Version: s.Version, Node: s.Node, Host: s.Host, PID: s.PID,
		Confirmed: s.Confirmed, HeartbeatMs: s.HeartbeatMs, Admin: s.Admin, ReleasedBy: s.ReleasedBy,
	}
	if s.Granted != 0 {
		w.GrantedMs = new(s.Granted)
	}
	if s.LeaseUntil > 0 && state != Free {
		w.LeaseLeftMs, w.LeaseEndsMs = new(s.LeaseUntil-now), new(s.LeaseUntil)
	}
	if s.ReportedClock == 0 {
		return w
	}
	age := max(0, now+suspect-e.Stat.Mtime)
	w.ReportAgeMs = &age
	if offset, known := ClockOffset(e, now, epoch); known {
		w.ClockOffsetMs, w.ClockUncertaintyMs = new(inMs(offset.Ahead)), new(inMs(offset.Uncertainty))
	}
	return w
}
