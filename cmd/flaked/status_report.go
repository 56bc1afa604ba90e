package main

import (
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/zkstore"
)

// statusReport is the JSON of `flaked status`. Scripts rely on it: fields may be added, but not
// changed. Times are Unix milliseconds. An unknown value is null.
type statusReport struct {
	// Source is "zookeeper". In a nodesReport it is "nodes".
	Source  string         `json:"source"`
	Cluster clusterReport  `json:"cluster"`
	Workers []workerReport `json:"workers"` // those ever held, by number
	Summary summaryReport  `json:"summary"`
}

type workerReport struct {
	Worker  int    `json:"worker"`
	Name    string `json:"name"`
	Address string `json:"address"` // several are separated by commas
	State   string `json:"state"`   // live, disconnected, stopped, releasing, record-missing or free
	// Phase is what the node last reported to be doing: starting, confirming, waiting, serving,
	// refusing, stopping, stopped, released.
	Phase string `json:"phase"`
	Term  int64  `json:"term"`
	// ClockOffsetMs is how far the node's clock is ahead of that of ZooKeeper's leader, with
	// the uncertainty ClockUncertaintyMs. Only live workers with a fresh report have them.
	ClockOffsetMs      *float64 `json:"clock_offset_ms"`
	ClockUncertaintyMs *float64 `json:"clock_uncertainty_ms"`
	// LeaseLeftMs is the time until the lease bound, negative after it. It is null for a free
	// worker and for a record that cannot be read.
	LeaseLeftMs *int64 `json:"lease_left_ms"`
	// LeaseEndsMs is the lease bound (LeaseUntil).
	LeaseEndsMs *int64 `json:"lease_ends_ms"`
	// ReportAgeMs is the time since the node last wrote its record.
	ReportAgeMs *int64 `json:"report_age_ms"`
	Version     string `json:"version"`
	Node        string `json:"node"` // its identity, a UUID
	Host        string `json:"host"`
	PID         int    `json:"pid"`
	Confirmed   bool   `json:"confirmed"`
	HeartbeatMs int64  `json:"heartbeat_ms"`
	// Admin is the address of the node's HTTP, "" for none.
	Admin string `json:"admin"`
	// GrantedMs is when the node acquired the worker, whatever restarts followed. It is null if
	// that was not recorded.
	GrantedMs *int64 `json:"granted_ms"`
	// ReleasedBy names the operator who took the worker from its node.
	ReleasedBy string `json:"released_by"`
	// Asked is the result of asking the node itself: "answered", "no answer", "timed out",
	// "another node", "access denied", or "" if it was not asked.
	Asked string `json:"asked"`
	// Says is the node's answer, null if there is none.
	Says *answer `json:"says"`

	offset *timeguard.Offset
}

type summaryReport struct {
	// Slots is the number of workers that the layout has: Slots = Live + Disconnected + Stopped
	// + Releasing + RecordMissing + Free. Held is the sum of the first three. Used counts the
	// workers that were ever held.
	Slots         int `json:"slots"`
	Used          int `json:"used"`
	Held          int `json:"held"`
	Live          int `json:"live"`
	Disconnected  int `json:"disconnected"`
	Stopped       int `json:"stopped"`
	Releasing     int `json:"releasing"`
	RecordMissing int `json:"record_missing"`
	Free          int `json:"free"`
	// Asked is true if nodes were asked for their own state.
	Asked bool `json:"asked"`
	// ShortestLeaseMs is the time for which all live nodes that do not refuse may go on without
	// ZooKeeper. It is null if there are none.
	ShortestLeaseMs *int64 `json:"shortest_lease_ms"`
	// NowMs is the time from which ages and leases are counted.
	NowMs int64 `json:"now_ms"`
	// Degraded means that the exit code is 4. Problems say why, in one sentence each.
	Degraded bool     `json:"degraded"`
	Problems []string `json:"problems"`
}

const (
	stateLive          = "live"
	stateDisconnected  = "disconnected"
	stateStopped       = "stopped"
	stateReleasing     = "releasing"
	stateRecordMissing = "record-missing"
	stateFree          = "free"
)

// assess returns a report of the records, which were read at the time local by this machine's
// clock. suspect is the doubt about that clock: see presentTime. The caller must call judge
// to complete the report.
func assess(name string, cl coordinator.Cluster, entries []coordinator.Entry, local time.Time) (r statusReport, suspect time.Duration) {
	now, suspect := presentTime(entries, local.UnixMilli())
	r = statusReport{
		Source:  sourceZooKeeper,
		Cluster: describeCluster(name, cl, time.UnixMilli(now)),
		Workers: []workerReport{},
		Summary: summaryReport{Slots: cl.Slots, NowMs: now},
	}
	var newest zkstore.Stat
	for _, e := range entries {
		if e.Stat.Mzxid > newest.Mzxid {
			newest = e.Stat
		}
	}
	for _, e := range entries {
		state := stateOf(cl, e, now)
		r.Summary.count(state)
		if state != stateRecordMissing && e.Slot.Term == 0 {
			continue // nobody has held it
		}
		r.Summary.Used++
		r.Workers = append(r.Workers, describeWorker(e, state, now, newest.Mzxid>>32))
	}
	s := &r.Summary
	s.Held = s.Live + s.Disconnected + s.Stopped
	s.Free = s.Slots - s.Held - s.Releasing - s.RecordMissing
	return r, suspect
}

// judge completes a report with the shortest lease and the problems, after nodes were asked.
func (r *statusReport) judge(suspect time.Duration) {
	shortest := &r.Summary.ShortestLeaseMs
	for _, w := range r.Workers {
		if _, refuses := w.refuses(); w.State != stateLive || refuses || w.LeaseLeftMs == nil {
			continue
		}
		if *shortest == nil || *w.LeaseLeftMs < **shortest {
			*shortest = w.LeaseLeftMs
		}
	}
	r.Summary.Problems = problems(*r, suspect)
	r.Summary.Degraded = len(r.Summary.Problems) > 0
}

// presentTime returns the time from which ages and leases are counted. It is this machine's
// clock, but never before the newest of the leader's timestamps. While a node is live, the
// newest timestamp is no older than reportPatience allows. If it is older by this clock, the
// clock is ahead or the node has stopped reporting. presentTime then returns the timestamp, and
// the difference as suspect.
func presentTime(entries []coordinator.Entry, local int64) (now int64, suspect time.Duration) {
	var newest, patience int64
	live := false
	for _, e := range entries {
		newest = max(newest, e.Stat.Mtime)
		if e.Live && !e.Absent && e.Slot.Term > 0 {
			live = true
			patience = max(patience, reportPatience(e.Slot.HeartbeatMs))
		}
	}
	switch {
	case local < newest:
		return newest, 0
	case live && local > newest+patience:
		return newest, millis(local - newest)
	}
	return local, 0
}

// reportPatience returns how old the report of a live worker may be, in milliseconds: three
// heartbeats, as for a vote on clocks, and a second for a reconnect. A heartbeat of 0
// stands for the default.
func reportPatience(heartbeat int64) int64 {
	if heartbeat <= 0 {
		heartbeat = limits.DefaultHeartbeat.Milliseconds()
	}
	return 3*heartbeat + 1000
}

func stateOf(cl coordinator.Cluster, e coordinator.Entry, now int64) string {
	availability := cl.JudgeFree(e.Slot, e.Live, now, now)
	switch {
	case e.Absent || e.Slot.Term < 0:
		return stateRecordMissing // an unreadable record says as little as none
	case e.Slot.Lost && availability != coordinator.Free && !e.Live:
		return stateRecordMissing
	}
	return map[coordinator.Availability]string{
		coordinator.Free: stateFree, coordinator.Releasing: stateReleasing, coordinator.Live: stateLive,
		coordinator.Stopped: stateStopped, coordinator.Disconnected: stateDisconnected,
	}[availability]
}

func (s *summaryReport) count(state string) {
	switch state {
	case stateLive:
		s.Live++
	case stateDisconnected:
		s.Disconnected++
	case stateStopped:
		s.Stopped++
	case stateReleasing:
		s.Releasing++
	case stateRecordMissing:
		s.RecordMissing++
	}
}

func describeWorker(e coordinator.Entry, state string, now, epoch int64) workerReport {
	s := e.Slot
	w := workerReport{
		Worker: e.Worker, Name: s.Name, Address: s.Address, State: state, Phase: s.State,
		Term: max(0, s.Term), Version: s.Version, Node: s.Node, Host: s.Host, PID: s.PID,
		Confirmed: s.Confirmed, HeartbeatMs: s.HeartbeatMs, Admin: s.Admin, GrantedMs: known(s.Granted), ReleasedBy: s.ReleasedBy,
	}
	if s.LeaseUntil > 0 && state != stateFree {
		left, ends := s.LeaseUntil-now, s.LeaseUntil
		w.LeaseLeftMs, w.LeaseEndsMs = &left, &ends
	}
	if s.ReportedClock == 0 {
		return w
	}
	age := max(0, now-e.Stat.Mtime)
	w.ReportAgeMs = &age
	// A report from before a change of leader was compared with another clock.
	if state == stateLive && age <= reportPatience(s.HeartbeatMs) && e.Stat.Mzxid>>32 == epoch && !s.Stopped && !s.Released {
		offset := timeguard.MeasureOffset(s.ReportedClock, s.ReportedClock+s.RTTMs, e.Stat.Mtime)
		ahead, uncertain := inMs(offset.Ahead), inMs(offset.Uncertainty)
		w.offset, w.ClockOffsetMs, w.ClockUncertaintyMs = &offset, &ahead, &uncertain
	}
	return w
}

func inMs(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
