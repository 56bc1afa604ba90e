package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/internal/credentials"
	"github.com/flaked/flaked/node"
)

// nodesTime is how long nodes have to answer when ZooKeeper is not read.
const nodesTime = 2 * time.Second

// More values of workerReport.Asked.
const (
	askedCluster = "another cluster" // a node of another cluster answers at the address
	askedNowhere = "no address"      // no address of the node can be reached from here
)

// target is an address to ask, and the workers that ZooKeeper had there.
type target struct {
	addr  string // empty: no address can be reached from here
	admin bool   // addr is an admin address, which speaks HTTP
	named bool   // addr is on the command line
	seen  []seenWorker
}

// namedTargets returns the targets of --addr, each once.
func namedTargets(addrs []string) (targets []target, err error) {
	for _, addr := range addrs {
		if _, _, err := splitAddr(addr); err != nil {
			return nil, usageError("--addr: %w", err)
		}
		if !slices.ContainsFunc(targets, func(t target) bool { return t.addr == addr }) {
			targets = append(targets, target{addr: addr, named: true})
		}
	}
	return targets, nil
}

// seenTargets returns where to ask nodes that were seen: at the admin address, as
// with ZooKeeper, else at an address for clients. Workers of one process share a
// target.
func (a *asker) seenTargets(nodes []seenWorker) (targets []target) {
	at := make(map[string]int)
	for _, n := range nodes {
		t := target{addr: a.reach(n.Admin, n.Host), admin: true}
		if t.addr == "" {
			t = target{addr: a.reachLine(n.Address, n.Host)}
		}
		i, known := at[t.addr]
		if !known || t.addr == "" {
			i = len(targets)
			at[t.addr] = i
			targets = append(targets, t)
		}
		targets[i].seen = append(targets[i].seen, n)
	}
	return targets
}

// reachLine returns the first of a node's addresses for clients that can be
// reached from here, "" if none can.
func (a *asker) reachLine(addresses, host string) string {
	for addr := range strings.SplitSeq(addresses, ",") {
		network, address, err := splitAddr(addr)
		switch {
		case err != nil:
		case network == "unix" && a.host != "" && host == a.host:
			return addr
		case network != "unix":
			if at := a.reach(address, host); at != "" {
				return at
			}
		}
	}
	return ""
}

// lineAccess says how to dial addresses for clients.
type lineAccess struct {
	tls *tls.Config // nil: plain TCP
	// err is the error of the TLS flags. With an error, no address can be dialled.
	err error
}

func newLineAccess(c *cli.Context) lineAccess {
	config, err := clientTLS(c, "tls")
	return lineAccess{config, err}
}

// askTargets asks all targets at once, and returns a report for each, in order. If cluster is
// not "", an answer from a node of another cluster does not count.
func (a *asker) askTargets(ctx context.Context, access lineAccess, cluster string, targets []target) []nodeReport {
	bounded, cancel := context.WithTimeout(ctx, nodesTime)
	defer cancel()
	reports := make([]nodeReport, len(targets))
	allAtOnce(bounded, len(targets), func(i int) {
		t := targets[i]
		outcome, why, doc := askedNowhere, "", admin.Status{}
		switch {
		case t.addr == "":
		case bounded.Err() != nil:
			outcome = askedLate
		case t.admin:
			outcome, doc = a.get(bounded, t.addr)
		default:
			outcome, why, doc = a.line(bounded, access, t)
		}
		switch {
		case outcome != askedAnswered:
		case len(doc.Workers) == 0:
			outcome, why = askedOther, "its answer has no worker"
		case cluster != "" && doc.Cluster.Name != cluster:
			outcome, why = askedCluster, "a node of cluster "+clean(doc.Cluster.Name)+" answers"
		}
		reports[i] = newNodeReport(t, outcome, why, doc, time.Now())
	})
	return reports
}

// lineToken returns the token to send to an address for clients. An address on the command line
// gets it. For other addresses the rule of asker.token applies.
func (a *asker) lineToken(t target) string {
	if t.named || a.everywhere || strings.HasPrefix(t.addr, "unix:") || isLoopback(t.addr) {
		return a.token
	}
	return ""
}

// line asks a node at an address for clients.
func (a *asker) line(ctx context.Context, access lineAccess, t target) (outcome, why string, doc admin.Status) {
	if access.err != nil {
		return askedSilent, access.err.Error(), doc
	}
	stats, err := askStats(ctx, credentials.Client{TLS: access.tls, Token: a.lineToken(t)}, t.addr, nodesTime)
	var silent *silentError
	var reply *replyError
	switch {
	case err == nil && stats["state"] == "":
		return askedOther, "its reply to STATS has no state", doc
	case err == nil:
		return askedAnswered, "", statsDocument(stats)
	case errors.As(err, &reply) && accessAdvice(reply) != "":
		return askedDenied, clean(reply.line), doc
	case ctx.Err() != nil || errors.As(err, &silent) && silent.late:
		return askedLate, fmt.Sprintf("timed out after %s", nodesTime), doc
	case errors.As(err, &silent):
		return askedSilent, clean(silent.why), doc
	}
	return askedOther, clean(plain(err.Error())), doc
}

// statsDocument returns what STATS says in the form of /v1/status. For a process of
// several workers STATS has the state of one of them, all their numbers, and how
// many are ready.
func statsDocument(stats map[string]string) admin.Status {
	number := func(name string) *int64 {
		n, err := strconv.ParseInt(stats[name], 10, 64)
		if err != nil {
			return nil
		}
		return &n
	}
	decimals := func(name string) *float64 {
		n := number(name)
		if n == nil {
			return nil
		}
		return new(float64(*n))
	}
	s := node.Snapshot{
		Name: stats["name"], Node: stats["node"], Phase: node.Phase(stats["state"]),
		Ready: stats["ready"] == "true", Cause: node.Cause(stats["cause"]),
		LeaseLeftMs: number("lease_left_ms"), ReservedLeftMs: number("reserved_ms"),
		ZooKeeper: node.ZooKeeperSnapshot{OK: stats["zookeeper_ok"] == "true", HeartbeatAgeMs: number("heartbeat_age_ms")},
		Clock:     node.ClockSnapshot{OffsetMs: decimals("clock_offset_ms"), UncertaintyMs: decimals("clock_uncertainty_ms")},
	}
	s.Code, s.Reason, _ = strings.Cut(strings.TrimPrefix(stats["reason"], "-"), " ")
	if stats["degraded"] != "" {
		s.Degraded = strings.Split(stats["degraded"], ",")
	}
	doc := admin.Status{Version: stats["version"], Cluster: node.ClusterSnapshot{Name: stats["cluster"]}}
	if ids := number("ids"); ids != nil {
		doc.IDs = *ids
	}
	ready := number("workers_ready")
	if ready != nil && *ready > 0 { // STATS may describe one that is not ready
		s.Ready, s.Code, s.Reason, s.Cause = true, "", "", ""
	}
	for i, text := range strings.Split(cmp.Or(stats["workers"], stats["worker"]), ",") {
		each := s
		if ready != nil {
			each.Ready = int64(i) < *ready
		}
		if n, err := strconv.Atoi(text); err == nil {
			each.Worker = &n
		}
		doc.Workers = append(doc.Workers, each)
	}
	return doc
}

// nodeReport is a node's report on itself, or the reason why there is none.
type nodeReport struct {
	Address string `json:"address"` // where it was asked, "" if nowhere
	// Asked is as in workerReport, or "another cluster", or "no address". Why has the
	// details for people if there is no answer.
	Asked string `json:"asked"`
	Why   string `json:"why"`
	// All that follows, except Seen, is the node's own answer.
	Name    string `json:"name"`
	Version string `json:"version"`
	Node    string `json:"node"`
	// Workers are the workers that the node holds. WorkersReady of them make IDs.
	Workers      []int   `json:"workers"`
	WorkersReady int     `json:"workers_ready"`
	Says         *answer `json:"says"` // for several workers: see spokesman
	// HeartbeatAgeMs is the time since ZooKeeper acknowledged the node's last heartbeat.
	HeartbeatAgeMs     *int64   `json:"heartbeat_age_ms"`
	ClockOffsetMs      *float64 `json:"clock_offset_ms"` // at that time
	ClockUncertaintyMs *float64 `json:"clock_uncertainty_ms"`
	// Seen is what ZooKeeper had at the address when it was last read. It is empty if
	// the node answered.
	Seen []seenWorker `json:"seen"`

	at time.Time // when the answer came
}

// newNodeReport returns the report of a target that was asked, at the moment of the
// answer. A document that is an answer has at least one worker.
func newNodeReport(t target, outcome, why string, doc admin.Status, at time.Time) nodeReport {
	r := nodeReport{Address: t.addr, Asked: outcome, Why: why, Workers: []int{}, Seen: []seenWorker{}, at: at}
	if outcome != askedAnswered {
		r.Seen = append(r.Seen, t.seen...)
		return r
	}
	first, one := doc.Workers[0], spokesman(doc.Workers)
	r.Name, r.Node, r.Version = clean(cmp.Or(doc.Name, first.Name)), clean(first.Node), clean(doc.Version)
	r.Says = newAnswer(one, doc)
	r.HeartbeatAgeMs, r.ClockOffsetMs, r.ClockUncertaintyMs = one.ZooKeeper.HeartbeatAgeMs, one.Clock.OffsetMs, one.Clock.UncertaintyMs
	for _, s := range doc.Workers {
		if s.Worker != nil {
			r.Workers = append(r.Workers, *s.Worker)
		}
		if s.Ready {
			r.WorkersReady++
		}
		if left := s.LeaseLeftMs; left != nil && (r.Says.LeaseLeftMs == nil || *left < *r.Says.LeaseLeftMs) {
			r.Says.LeaseLeftMs = left
		}
	}
	slices.Sort(r.Workers)
	return r
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
func (r nodeReport) until(now time.Time) nodeReport {
	passed := max(0, now.Sub(r.at).Milliseconds())
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

// says returns the node's own state in a few words.
func (r nodeReport) says() string {
	text := workerReport{Says: r.Says, Asked: r.Asked}.says()
	if r.partly() {
		text += fmt.Sprintf(" (%d of %d workers)", r.WorkersReady, len(r.Workers))
	}
	return text
}

// partly reports whether some of a node's workers are ready and some are not.
func (r nodeReport) partly() bool { return r.WorkersReady > 0 && r.WorkersReady < len(r.Workers) }

// whom returns the node's name, its own or the one that ZooKeeper had, and its address.
func (r nodeReport) whom() string {
	name := r.Name
	if name == "" && len(r.Seen) > 0 {
		name = clean(r.Seen[0].Name)
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
func (r nodeReport) isDown() bool {
	return len(r.Seen) > 0 && !slices.ContainsFunc(r.Seen, func(s seenWorker) bool { return s.State != stateStopped })
}
