package main

import (
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/zkstore"
)

// statusReport is what `flaked status -o json` prints. Scripts rely on it:
// fields are added, not changed. Instants are Unix milliseconds; what is not
// known is null.
type statusReport struct {
	// Source is "zookeeper"; that of a nodesReport is "nodes".
	Source  string         `json:"source"`
	Cluster clusterReport  `json:"cluster"`
	Workers []workerReport `json:"workers"` // by number; those that were ever held
	Summary summaryReport  `json:"summary"`
}

type workerReport struct {
	Worker  int    `json:"worker"`
	Name    string `json:"name"`
	Address string `json:"address"` // several are separated by commas
	State   string `json:"state"`   // live, detached, stopped, cooling, lost or free
	// Phase is what the node last said that it does: starting, settling,
	// waiting, serving, refusing, stopping, stopped, released.
	Phase string `json:"phase"`
	Term  int64  `json:"term"`
	// ClockOffsetMs is how far the node's clock is ahead of ZooKeeper's
	// leader's, give or take ClockErrorMs. Of live workers with a fresh report.
	ClockOffsetMs *float64 `json:"clock_offset_ms"`
	ClockErrorMs  *float64 `json:"clock_error_ms"`
	// LeaseLeftMs is how long the worker stays its holder's; negative when a
	// lease has run out. Null where nobody holds one.
	LeaseLeftMs *int64 `json:"lease_left_ms"`
	// LeaseEndsMs is when: its lease bound H.
	LeaseEndsMs *int64 `json:"lease_ends_ms"`
	// ReportAgeMs is how long ago the node last wrote its record.
	ReportAgeMs *int64 `json:"report_age_ms"`
	Version     string `json:"version"`
	Node        string `json:"node"` // its identity, a UUID
	Host        string `json:"host"`
	PID         int    `json:"pid"`
	Settled     bool   `json:"settled"`
	HeartbeatMs int64  `json:"heartbeat_ms"`
	// Admin is where the node answers over HTTP; empty for nowhere.
	Admin string `json:"admin"`
	// GrantedMs is since when the node holds the worker, over restarts; null
	// where that was not written down.
	GrantedMs *int64 `json:"granted_ms"`
	// ReleasedBy is who took the worker from its node by hand.
	ReleasedBy string `json:"released_by"`
	// Asked is what came of asking the node itself: "answered", "no answer",
	// "out of time", "another node", "not let in", or "" where it was not tried.
	Asked string `json:"asked"`
	// Says is the answer; null if there is none.
	Says *answer `json:"says"`

	offset *timeguard.Offset
}

type summaryReport struct {
	// Slots is how many workers the layout has: Slots = Live + Detached +
	// Stopped + Cooling + Lost + Free. Held is the first three; Used have been
	// held at some time.
	Slots    int `json:"slots"`
	Used     int `json:"used"`
	Held     int `json:"held"`
	Live     int `json:"live"`
	Detached int `json:"detached"`
	Stopped  int `json:"stopped"`
	Cooling  int `json:"cooling"`
	Lost     int `json:"lost"`
	Free     int `json:"free"`
	// Asked: nodes were asked for what they say themselves.
	Asked bool `json:"asked"`
	// ShortestLeaseMs is how long all live nodes may serve on without ZooKeeper,
	// but those that refuse to; null where there are none.
	ShortestLeaseMs *int64 `json:"shortest_lease_ms"`
	// NowMs is the moment that ages and leases are counted from.
	NowMs int64 `json:"now_ms"`
	// Degraded: the exit code is 4. Problems say why, a sentence each.
	Degraded bool     `json:"degraded"`
	Problems []string `json:"problems"`
}

const (
	stateLive     = "live"
	stateDetached = "detached"
	stateStopped  = "stopped"
	stateCooling  = "cooling"
	stateLost     = "lost"
	stateFree     = "free"
)

// assess makes a report of the records as they were read at a moment by this
// machine's clock; suspect is how far that may be wrong. It is still to be
// judged.
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
		if state != stateLost && e.Slot.Term == 0 {
			continue // nobody has held it
		}
		r.Summary.Used++
		r.Workers = append(r.Workers, describeWorker(e, state, now, newest.Mzxid>>32))
	}
	s := &r.Summary
	s.Held = s.Live + s.Detached + s.Stopped
	s.Free = s.Slots - s.Held - s.Cooling - s.Lost
	return r, suspect
}

// judge says what somebody should look after, once all that there is is known.
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

// presentTime is the moment that ages and leases are counted from: by this
// machine's clock, held against the leader's stamps. It is never before the
// newest of them. While a node is live the newest is never much older than its
// heartbeats, so a clock that is far ahead is not believed either: then, or
// because that node has stopped reporting, the difference is returned as well.
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

// reportPatience is how old the report of a live worker may be, in ms: three
// heartbeats, as for a vote on clocks, and a second for a reconnect.
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
		return stateLost // a record that cannot be read says as little as none
	case e.Slot.Lost && availability != coordinator.Free && !e.Live:
		return stateLost
	}
	return map[coordinator.Availability]string{
		coordinator.Free: stateFree, coordinator.Cooling: stateCooling, coordinator.Live: stateLive,
		coordinator.Stopped: stateStopped, coordinator.Detached: stateDetached,
	}[availability]
}

func (s *summaryReport) count(state string) {
	switch state {
	case stateLive:
		s.Live++
	case stateDetached:
		s.Detached++
	case stateStopped:
		s.Stopped++
	case stateCooling:
		s.Cooling++
	case stateLost:
		s.Lost++
	}
}

func describeWorker(e coordinator.Entry, state string, now, epoch int64) workerReport {
	s := e.Slot
	w := workerReport{
		Worker: e.Worker, Name: s.Name, Address: s.Address, State: state, Phase: s.State,
		Term: max(0, s.Term), Version: s.Version, Node: s.Node, Host: s.Host, PID: s.PID,
		Settled: s.Settled, HeartbeatMs: s.HeartbeatMs, Admin: s.Admin, GrantedMs: known(s.Granted), ReleasedBy: s.ReleasedBy,
	}
	if s.H > 0 && state != stateFree {
		left, ends := s.H-now, s.H
		w.LeaseLeftMs, w.LeaseEndsMs = &left, &ends
	}
	if s.Reported == 0 {
		return w
	}
	age := max(0, now-e.Stat.Mtime)
	w.ReportAgeMs = &age
	// A report under a former leader was compared with another clock.
	if state == stateLive && age <= reportPatience(s.HeartbeatMs) && e.Stat.Mzxid>>32 == epoch && !s.Stopped && !s.Released {
		offset := timeguard.MeasureOffset(s.Reported, s.Reported+s.RTTMs, e.Stat.Mtime)
		ahead, uncertain := inMs(offset.Ahead), inMs(offset.Error)
		w.offset, w.ClockOffsetMs, w.ClockErrorMs = &offset, &ahead, &uncertain
	}
	return w
}

func inMs(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
