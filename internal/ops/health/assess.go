package health

import (
	"context"
	"math"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// ReadRecords returns a report of the workers that ZooKeeper has recorded in st for the cluster of this name. The
// caller must call Complete.
func ReadRecords(ctx context.Context, st store.Store, name string) (Report, error) {
	cl, err := coordinator.ReadCluster(ctx, st)
	if err != nil {
		return Report{}, err
	}
	entries, err := coordinator.ReadSlots(ctx, st, cl)
	if err != nil {
		return Report{}, err
	}
	return AssessRecords(name, cl, entries, time.Now()), nil
}

// AssessRecords returns a report of the records, which were read at the time local by this machine's clock. The caller
// must call Complete.
func AssessRecords(name string, cl coordinator.Cluster, entries []coordinator.Entry, local time.Time) Report {
	now, suspect := presentTime(entries, local.UnixMilli())
	r := Report{
		Source:    SourceZooKeeper,
		Cluster:   DescribeCluster(name, cl, time.UnixMilli(now)),
		Workers:   []WorkerReport{},
		suspectMs: suspect,
	}
	var newest int64
	for _, e := range entries {
		newest = max(newest, e.Stat.Mzxid)
	}
	for _, e := range entries {
		state := stateOf(cl, e, now)
		if state == RecordMissing || e.Slot.Term != 0 { // else no node has held it
			r.Workers = append(r.Workers, describeWorker(e, state, now, suspect, newest>>32))
		}
	}
	r.Summary = CountWorkers(cl, entries, now)
	r.Summary.Used = len(r.Workers)
	return r
}

// CountWorkers returns how many workers are in each state at the moment now, in Unix milliseconds.
func CountWorkers(cl coordinator.Cluster, entries []coordinator.Entry, now int64) Summary {
	n := make(map[string]int)
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

// Complete completes a report with the shortest lease, what nodes say of sequences, and the problems. Call it once: a
// second call would add what nodes say again. If nodes are asked and sequences are read, call it after
// poll.Asker.AskWorkers and ReadSequences.
func (r *Report) Complete() {
	for _, w := range r.Workers {
		if r.usesLease(w) {
			r.Summary.ShortestLeaseMs = shorter(r.Summary.ShortestLeaseMs, w.LeaseLeft())
		}
	}
	r.Sequences = merge(r.Sequences, r.Source == SourceZooKeeper && r.SequencesError == "", r.Workers)
	r.Summary.Problems = problems(*r)
	r.Summary.Degraded = len(r.Summary.Problems) > 0
}

// shorter returns the pointer to the smaller of two times. nil counts as unlimited.
func shorter(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// presentTime returns the time from which ages and leases are counted. It is this machine's
// clock, but never before the newest of the leader's timestamps. While a node is live, the
// newest timestamp is no older than ReportPatience allows. If it is older by this clock, the
// clock is ahead or the node has stopped reporting. presentTime then returns the timestamp, and
// the difference as suspectMs. All times are in milliseconds.
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

// ReportPatience returns how old the report of a live worker may be, in milliseconds: three
// heartbeats, as for a vote on clocks, and a second for a reconnect. A heartbeat of 0
// stands for the default.
func ReportPatience(heartbeat int64) int64 {
	if heartbeat <= 0 {
		heartbeat = limits.DefaultHeartbeat.Milliseconds()
	}
	return 3*heartbeat + 1000
}

func stateOf(cl coordinator.Cluster, e coordinator.Entry, now int64) string {
	availability := cl.Availability(e.Slot, e.Live, now, now)
	switch {
	case e.Missing || e.Slot.Term < 0:
		return RecordMissing // an unreadable record says as little as none
	case e.Slot.StandsIn && availability != coordinator.Free && !e.Live:
		return RecordMissing
	}
	return stateNames[availability]
}

var stateNames = map[coordinator.Availability]string{
	coordinator.Free: Free, coordinator.Releasing: Releasing, coordinator.Live: Live,
	coordinator.Stopped: Stopped, coordinator.Disconnected: Disconnected,
}

// describeWorker returns the report of a worker in this state. epoch is the leader's epoch. For now and suspect, see
// presentTime.
func describeWorker(e coordinator.Entry, state string, now, suspect, epoch int64) WorkerReport {
	s := e.Slot
	w := WorkerReport{
		Worker: e.Worker, Name: s.Name, Address: s.Address, State: state, Phase: s.Phase,
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

// ClockOffset returns how far the clock of a live worker's node is ahead of the leader's by its last
// report, and whether that is known: the report must be recent, and of the present leader.
// now is Unix ms, and epoch the leader's epoch.
func ClockOffset(e coordinator.Entry, now, epoch int64) (offset timeguard.Offset, known bool) {
	s := e.Slot
	if !e.Live || e.Missing || s.ReportedClock == 0 || s.Stopped || s.Released ||
		now-e.Stat.Mtime > ReportPatience(s.HeartbeatMs) || e.Stat.Epoch() != epoch {
		return timeguard.Offset{}, false
	}
	return timeguard.MeasureOffset(s.ReportedClock, s.ReportedClock+s.RTTMs, e.Stat.Mtime), true
}

func inMs(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Offset returns the offset of the worker's clock and its uncertainty in milliseconds, and
// whether they are known.
func (w WorkerReport) Offset() (ms, uncertain float64, known bool) {
	if w.ClockOffsetMs == nil {
		return 0, 0, false
	}
	if w.ClockUncertaintyMs != nil {
		uncertain = *w.ClockUncertaintyMs
	}
	return *w.ClockOffsetMs, uncertain, true
}

// ClockOff reports whether the worker's clock is known to be so far off that a node warns.
func (w WorkerReport) ClockOff() bool {
	ms, uncertain, known := w.Offset()
	return known && beyondWarning(ms, uncertain)
}

// WarnOffsetMs is the clock offset above which a node warns, in milliseconds.
const WarnOffsetMs = float64(limits.WarnSkew) / float64(time.Millisecond)

// beyondWarning reports whether a clock offset is certainly above WarnOffsetMs, even if it is smaller
// by its uncertainty. Both are in milliseconds.
func beyondWarning(ms, uncertain float64) bool { return math.Abs(ms)-uncertain > WarnOffsetMs }

// AssessNodes returns the complete report of nodes that were asked because ZooKeeper was not read. why is the reason.
func AssessNodes(why string, workers []WorkerReport, now time.Time) Report {
	r := Report{Source: SourceNodes, ZooKeeperError: why, Workers: workers,
		Summary: Summary{NowMs: now.UnixMilli()}}
	r.Complete()
	return r
}
