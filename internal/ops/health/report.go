// Package health assesses a cluster: which state each worker is in, what is a problem, and what to do about it. It goes
// by ZooKeeper's records and the answers of nodes. The command line, the status page and the metrics print its reports.
//
// ReadDraft and Draft.Complete make a Report of ZooKeeper's records, and AssessNodes one of nodes. problem_table.go has
// all problems, and problems.go decides which of them a cluster has. standing.go decides whether a node serves.
// lines.go makes lines of a report, and marks.go decides what the page marks. OwnWorker is a worker of this process,
// which knows more of it than ZooKeeper does. The files sequence_*.go do the same for named sequences.
package health

import (
	"strings"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/words"
)

// Report is the JSON of `flaked status`. Scripts rely on it: fields may be added, but not changed. Times are Unix
// milliseconds. An unknown value is null.
type Report struct {
	// Source is SourceZooKeeper, or SourceNodes if ZooKeeper was not read. ZooKeeperError is then the reason, "" with
	// --addr.
	Source         string        `json:"source"`
	ZooKeeperError string        `json:"zookeeper_error"`
	Cluster        ClusterReport `json:"cluster"`
	// Workers are those ever held, by number. If ZooKeeper was not read, they are those of the nodes that were asked.
	Workers []WorkerReport `json:"workers"`
	Summary Summary        `json:"summary"`
	// Sequences is null if there are none. If they were not read from ZooKeeper, it has what nodes say. SequencesError
	// says why reading them failed, "" if it did not fail.
	Sequences      *Sequences `json:"sequences"`
	SequencesError string     `json:"sequences_error"`

	// suspectMs is the doubt about this machine's clock, in milliseconds: see presentTime.
	suspectMs int64
}

// WorkerReport is one worker. recordedWorker makes it from a record in ZooKeeper. If the node is asked, too,
// poll.Asker.AskWorkers adds Outcome, Why and Says. If ZooKeeper was not read, AskedNode.worker makes all fields from
// the node's answer.
type WorkerReport struct {
	Worker  int         `json:"worker"` // or UnknownWorker
	Name    string      `json:"name"`
	Address string      `json:"address"` // several are separated by commas
	State   WorkerState `json:"state"`
	// Phase is the phase that the node reported last.
	Phase node.Phase `json:"phase"`
	Term  int64      `json:"term"`
	// ClockOffsetMs is the offset of the node's clock from that of ZooKeeper's leader: above 0 it is ahead.
	// ClockUncertaintyMs is the uncertainty. By ZooKeeper's records, only live workers with a fresh report have them.
	// With --addr, they are what the node says.
	ClockOffsetMs      *float64 `json:"clock_offset_ms"`
	ClockUncertaintyMs *float64 `json:"clock_uncertainty_ms"`
	// LeaseLeftMs is the time until the lease bound, negative after it. It is null for a free worker and for a record
	// that cannot be read. With --addr it is null, and Says has the time that is left.
	LeaseLeftMs *int64 `json:"lease_left_ms"`
	// LeaseEndsMs is the lease bound (LeaseUntil).
	LeaseEndsMs *int64 `json:"lease_ends_ms"`
	// ReportAgeMs is the time since the node last wrote its record. With --addr, it is the time since ZooKeeper
	// acknowledged the node's last heartbeat.
	ReportAgeMs *int64 `json:"report_age_ms"`
	Version     string `json:"version"`
	Node        string `json:"node"` // its identity, a UUID
	Host        string `json:"host"`
	PID         int    `json:"pid"`
	Confirmed   bool   `json:"confirmed"`
	HeartbeatMs int64  `json:"heartbeat_ms"`
	// Admin is the address of the node's HTTP, with https:// in front if it uses TLS, "" for none.
	Admin string `json:"admin"`
	// GrantedMs is the time at which the node acquired the worker. A restart does not change it. It is null if it was
	// not recorded.
	GrantedMs *int64 `json:"granted_ms"`
	// ReleasedBy names the operator who took the worker from its node.
	ReleasedBy string `json:"released_by"`
	// Outcome is the result of asking the node itself, "" if it was not asked.
	Outcome Outcome `json:"asked"`
	// Why has the details for people if there is no answer.
	Why string `json:"why"`
	// Says is the node's answer, null if there is none.
	Says *Answer `json:"says"`
}

// Summary counts the workers of a Report.
type Summary struct {
	// Slots is the number of workers that the cluster uses: Slots = Live + Disconnected + Stopped + Releasing +
	// RecordMissing + Free. Held is the sum of the first three. Used counts the workers that were ever held.
	Slots         int `json:"slots"`
	Used          int `json:"used"`
	Held          int `json:"held"`
	Live          int `json:"live"`
	Disconnected  int `json:"disconnected"`
	Stopped       int `json:"stopped"`
	Releasing     int `json:"releasing"`
	RecordMissing int `json:"record_missing"`
	Free          int `json:"free"`
	// ShortestLeaseMs is the time for which all nodes that use a lease may go on without ZooKeeper: see usesLease. It
	// is null if there are none.
	ShortestLeaseMs *int64 `json:"shortest_lease_ms"`
	// NowMs is the time from which ages and leases are counted.
	NowMs int64 `json:"now_ms"`
	// Degraded is true if there are problems. `flaked status` then exits with 4, or with 3 if no asked node answered.
	// Problems has the worst first.
	Degraded bool      `json:"degraded"`
	Problems []Problem `json:"problems"`
}

// Report.Source.
const (
	SourceZooKeeper = "zookeeper"
	SourceNodes     = "nodes"
)

// WorkerState is the state of a worker.
type WorkerState string

const (
	Live          WorkerState = "live"
	Disconnected  WorkerState = "disconnected"
	Stopped       WorkerState = "stopped"
	Releasing     WorkerState = "releasing"
	RecordMissing WorkerState = "record-missing"
	Free          WorkerState = "free"
)

// What a node of SourceNodes has not said.
const (
	UnknownWorker             = -1 // it has not answered, or has no worker yet
	UnknownState  WorkerState = "" // it has not answered
)

// Outcome is the result of asking a node.
type Outcome string

const (
	Answered     Outcome = "answered"
	NoAnswer     Outcome = "no answer"
	TimedOut     Outcome = "timed out"
	AnotherNode  Outcome = "another node"  // answers at its address
	AccessDenied Outcome = "access denied" // no valid token, or no client certificate
	TLSFailed    Outcome = "TLS failed"    // one side refused the other's certificate
	NoAddress    Outcome = "no address"    // no address of the node can be reached from here
)

// Answer has a node's own report on one of its workers, from STATUS.
type Answer struct {
	// Ready is whether Node.Ready returns nil. Otherwise Reason is the text of the refusal, and Cause is the reason in
	// one word. A node that drains or waits for named sequences is not ready, and still answers a GET with an ID.
	Ready  bool       `json:"ready"`
	Reason string     `json:"reason"`
	Cause  node.Cause `json:"cause"`
	Phase  node.Phase `json:"phase"`
	// Degraded lists what is wrong with the worker, in the words of STATUS.
	Degraded []string `json:"degraded"`
	// LeaseLeftMs and ReservedLeftMs say how long the worker can still serve without ZooKeeper and without its disk.
	LeaseLeftMs    *int64 `json:"lease_left_ms"`
	ReservedLeftMs *int64 `json:"reserved_left_ms"`
	// ZooKeeperOK is node.ZooKeeperSnapshot.OK: the last round with ZooKeeper succeeded.
	ZooKeeperOK bool  `json:"zookeeper_ok"`
	IDs         int64 `json:"ids"`
	// Dev means a development node.
	Dev bool `json:"dev"`
	// Sequences are the named sequences that the node knows, null if there are none.
	Sequences *Sequences `json:"sequences"`
}

// NewAnswer returns what a process that has issued so many IDs says of one of its workers.
func NewAnswer(s node.Snapshot, ids int64) *Answer {
	a := &Answer{
		Ready: s.Ready, Cause: node.Cause(words.Clean(string(s.Cause))), Phase: node.Phase(words.Clean(string(s.Phase))),
		Degraded:    []string{},
		LeaseLeftMs: s.LeaseLeftMs, ReservedLeftMs: s.ReservedLeftMs, ZooKeeperOK: s.ZooKeeper.OK, IDs: ids,
	}
	if !s.Ready {
		a.Reason = words.Clean(strings.TrimSpace("-" + s.Code + " " + s.Reason))
	}
	for _, d := range s.Degraded {
		a.Degraded = append(a.Degraded, words.Clean(d))
	}
	return a
}

// LeaseLeft returns how long the worker can still serve without ZooKeeper, in milliseconds, nil if that is not known.
// It is the node's own answer if there is one: the record counts by ZooKeeper's clock, which may be wrong.
func (w WorkerReport) LeaseLeft() *int64 {
	if w.Says != nil && w.Says.LeaseLeftMs != nil {
		return w.Says.LeaseLeftMs
	}
	return w.LeaseLeftMs
}

// HasNumber reports whether the number of the worker is known.
func (w WorkerReport) HasNumber() bool { return w.Worker != UnknownWorker }

// ByState returns the number of workers in each state.
func (s Summary) ByState() map[WorkerState]int {
	return map[WorkerState]int{
		Live: s.Live, Disconnected: s.Disconnected, Stopped: s.Stopped,
		Releasing: s.Releasing, RecordMissing: s.RecordMissing, Free: s.Free,
	}
}
