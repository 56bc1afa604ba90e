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
	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/internal/credentials"
	"github.com/flaked/flaked/node"
)

// nodesTime is how long nodes have to answer when ZooKeeper is not read.
const nodesTime = 2 * time.Second

// target is an address to ask, and the workers that ZooKeeper had there.
type target struct {
	addr  string // empty: no address can be reached from here
	admin bool   // addr is an admin address, which speaks HTTP or HTTPS
	named bool   // addr is on the command line
	seen  []clusterview.Seen
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
func (a *asker) seenTargets(nodes []clusterview.Seen) (targets []target) {
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

// lineAccess says how to dial nodes: addresses for clients, and admin addresses that use TLS.
type lineAccess struct {
	tls *tls.Config // nil: plain TCP for clients, and the system's authorities for HTTPS
	// err is the error of the TLS flags. With an error, none of these can be dialled.
	err error
}

func newLineAccess(c *cli.Context) lineAccess {
	config, err := clientTLS(c, "tls")
	return lineAccess{config, err}
}

// askTargets asks all targets at once, and returns a report for each, in order. If cluster is
// not "", an answer from a node of another cluster does not count.
func (a *asker) askTargets(ctx context.Context, cluster string, targets []target) []clusterview.NodeReport {
	bounded, cancel := context.WithTimeout(ctx, nodesTime)
	defer cancel()
	reports := make([]clusterview.NodeReport, len(targets))
	allAtOnce(len(targets), func(i int) {
		t := targets[i]
		outcome, why, doc := clusterview.NoAddress, "", admin.Status{}
		switch {
		case t.addr == "":
		case bounded.Err() != nil:
			outcome = clusterview.TimedOut
		case t.admin:
			outcome, why, doc = a.get(bounded, t.addr)
		default:
			outcome, why, doc = a.line(bounded, t)
		}
		switch {
		case outcome != clusterview.Answered:
		case len(doc.Workers) == 0:
			outcome, why = clusterview.AnotherNode, "its answer has no worker"
		case cluster != "" && doc.Cluster.Name != cluster:
			outcome, why = clusterview.AnotherCluster, "a node of cluster "+clusterview.Clean(doc.Cluster.Name)+" answers"
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
func (a *asker) line(ctx context.Context, t target) (outcome, why string, doc admin.Status) {
	if a.access.err != nil {
		return clusterview.NoAnswer, a.access.err.Error(), doc
	}
	stats, err := askStats(ctx, credentials.Client{TLS: a.access.tls, Token: a.lineToken(t)}, t.addr, nodesTime)
	var silent *silentError
	var reply *replyError
	switch {
	case err == nil && stats["state"] == "":
		return clusterview.AnotherNode, "its reply to STATS has no state", doc
	case err == nil:
		return clusterview.Answered, "", statsDocument(stats)
	case errors.As(err, &reply) && accessAdvice(reply) != "":
		return clusterview.AccessDenied, clusterview.Clean(reply.line), doc
	case ctx.Err() != nil || errors.As(err, &silent) && silent.late:
		return clusterview.TimedOut, fmt.Sprintf("timed out after %s", nodesTime), doc
	case errors.As(err, &silent):
		return clusterview.NoAnswer, clusterview.Clean(silent.why), doc
	}
	return clusterview.AnotherNode, clusterview.Clean(plain(err.Error())), doc
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

// newNodeReport returns the report of a target that was asked, at the moment of the
// answer. A document that is an answer has at least one worker.
func newNodeReport(t target, outcome, why string, doc admin.Status, at time.Time) clusterview.NodeReport {
	r := clusterview.NodeReport{Address: t.addr, Asked: outcome, Why: why, Workers: []int{}, Seen: []clusterview.Seen{}, At: at}
	if outcome != clusterview.Answered {
		r.Seen = append(r.Seen, t.seen...)
		return r
	}
	r.Name, r.Version = clusterview.Clean(cmp.Or(doc.Name, doc.Workers[0].Name)), clusterview.Clean(doc.Version)
	r.Describe(doc.Workers, doc.IDs)
	return r
}
