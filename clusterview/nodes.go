package clusterview

import (
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/node"
)

// NodesReport is the JSON of `flaked status` if ZooKeeper was not read: what nodes say
// themselves. Scripts rely on it: fields may be added, but not changed.
type NodesReport struct {
	// Source is SourceNodes. In a Report it is SourceZooKeeper.
	Source    string       `json:"source"`
	ZooKeeper Unread       `json:"zookeeper"`
	Addresses Addresses    `json:"addresses"`
	Nodes     []NodeReport `json:"nodes"`
	Summary   NodesSummary `json:"summary"`
}

// Unread says which ZooKeeper could not be read and why. Both fields are empty
// with --addr, which reads none.
type Unread struct {
	Connect string `json:"connect"`
	Error   string `json:"error"`
}

// Addresses says where the addresses come from.
type Addresses struct {
	// From is FromFlag, or FromCache: the addresses that ZooKeeper had when it was last read.
	From string `json:"from"`
	// SavedMs is the time of the last reading of ZooKeeper, and AgeMs the time since then. Both
	// are null for --addr. AgeMs is also null if this machine's clock has gone back since.
	SavedMs *int64 `json:"saved_ms"`
	AgeMs   *int64 `json:"age_ms"`
	// Left is the number of nodes that the cache had no room for.
	Left int `json:"left"`
}

// NodesSummary counts the nodes of a NodesReport.
type NodesSummary struct {
	Nodes    int `json:"nodes"`
	Answered int `json:"answered"`
	Ready    int `json:"ready"`
	// ShortestLeaseMs is the time for which all ready nodes may go on without ZooKeeper. It is
	// null if no node is ready.
	ShortestLeaseMs *int64    `json:"shortest_lease_ms"`
	NowMs           int64     `json:"now_ms"` // ages and leases are counted from here
	Degraded        bool      `json:"degraded"`
	Problems        []Problem `json:"problems"`
}

// The values of Addresses.From.
const (
	FromFlag  = "--addr"
	FromCache = "cache"
)

// NodeReport is a node's report on itself, or the reason why there is none.
type NodeReport struct {
	Address string `json:"address"` // where it was asked, "" if nowhere
	// Asked is the result of asking the node. Why has the details for people if there is no
	// answer.
	Asked string `json:"asked"`
	Why   string `json:"why"`
	// All that follows, except Seen, is the node's own answer.
	Name    string `json:"name"`
	Version string `json:"version"`
	Node    string `json:"node"`
	// Workers are the workers that the node holds. WorkersReady of them make IDs.
	Workers      []int   `json:"workers"`
	WorkersReady int     `json:"workers_ready"`
	Says         *Answer `json:"says"` // for several workers: see spokesman
	// HeartbeatAgeMs is the time since ZooKeeper acknowledged the node's last heartbeat.
	HeartbeatAgeMs     *int64   `json:"heartbeat_age_ms"`
	ClockOffsetMs      *float64 `json:"clock_offset_ms"` // at that time
	ClockUncertaintyMs *float64 `json:"clock_uncertainty_ms"`
	// Seen has the workers that ZooKeeper had at the address when it was last read. It is
	// empty if the node answered.
	Seen []Seen `json:"seen"`

	At time.Time `json:"-"` // when the answer came
}

// Seen has what ZooKeeper recorded of a worker whose node may run or be started again.
type Seen struct {
	Worker  int    `json:"worker"`
	Name    string `json:"name"`
	Node    string `json:"node"`
	State   string `json:"state"`
	Host    string `json:"host"`
	Address string `json:"address"`
	Admin   string `json:"admin"`
}

// Describe fills in the answer of a process that has issued so many IDs. A process has at least
// one worker.
func (r *NodeReport) Describe(workers []node.Snapshot, ids int64) {
	one := spokesman(workers)
	r.Node, r.Says = Clean(workers[0].Node), NewAnswer(one, ids)
	r.HeartbeatAgeMs, r.ClockOffsetMs, r.ClockUncertaintyMs = one.ZooKeeper.HeartbeatAgeMs, one.Clock.OffsetMs, one.Clock.UncertaintyMs
	for _, s := range workers {
		if s.Worker != nil {
			r.Workers = append(r.Workers, *s.Worker)
		}
		if s.Ready {
			r.WorkersReady++
		}
		r.Says.LeaseLeftMs = Shorter(r.Says.LeaseLeftMs, s.LeaseLeftMs)
	}
	slices.Sort(r.Workers)
}

// spokesman returns the worker whose state stands for the whole process. A ready worker goes
// first, as any ready worker answers a GET. Of the ready ones it is the one with most troubles.
func spokesman(workers []node.Snapshot) node.Snapshot {
	best := workers[0]
	for _, s := range workers[1:] {
		if s.Ready && (!best.Ready || len(s.Degraded) > len(best.Degraded)) {
			best = s
		}
	}
	return best
}

// until returns the report as it must be at a later moment: ages have grown and
// leases have shrunk by the time that passed.
func (r NodeReport) until(now time.Time) NodeReport {
	passed := max(0, now.Sub(r.At).Milliseconds())
	if r.HeartbeatAgeMs != nil {
		r.HeartbeatAgeMs = new(*r.HeartbeatAgeMs + passed)
	}
	if r.Says != nil {
		says := *r.Says
		for _, left := range []**int64{&says.LeaseLeftMs, &says.ReservedLeftMs} {
			if *left != nil {
				*left = new(**left - passed)
			}
		}
		r.Says = &says
	}
	return r
}

// SaysText returns the node's own state in a few words.
func (r NodeReport) SaysText() string {
	text := WorkerReport{Says: r.Says, Asked: r.Asked}.SaysText()
	if r.partly() {
		text += fmt.Sprintf(" (%d of %d workers)", r.WorkersReady, len(r.Workers))
	}
	return text
}

// partly reports whether some of a node's workers are ready and some are not.
func (r NodeReport) partly() bool { return r.WorkersReady > 0 && r.WorkersReady < len(r.Workers) }

// whom returns the node's name, its own or the one that ZooKeeper had, and its address.
func (r NodeReport) whom() string {
	name := r.Name
	if name == "" && len(r.Seen) > 0 {
		name = Clean(r.Seen[0].Name)
	}
	switch {
	case name != "" && r.Address != "":
		return fmt.Sprintf("%s at %s", name, r.Address)
	case r.Address != "":
		return r.Address
	case name == "" && len(r.Seen) > 0:
		return fmt.Sprintf("worker %d", r.Seen[0].Worker)
	}
	return name
}

// isDown reports whether all workers that ZooKeeper had at the address were stopped.
// Then no answer is expected.
func (r NodeReport) isDown() bool {
	return len(r.Seen) > 0 && !slices.ContainsFunc(r.Seen, func(s Seen) bool { return s.State != Stopped })
}
