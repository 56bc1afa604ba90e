package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/clusterview"
	"github.com/flaked/flaked/internal/credentials"
	"github.com/flaked/flaked/node"
)

// nodesTime is how long nodes have to answer when ZooKeeper is not read.
const nodesTime = 2 * time.Second

// target is an address for clients to ask.
type target struct {
	addr  string // empty: no address can be reached from here
	named bool   // addr is on the command line
	// names and address are what ZooKeeper has of the nodes there.
	names   []string
	address string
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

// lineToken returns the token to send to an address for clients. An address on the command line
// gets it. For other addresses the rule of asker.token applies.
func (a *asker) lineToken(t target) string {
	if t.named || a.everywhere || strings.HasPrefix(t.addr, "unix:") || isLoopback(t.addr) {
		return a.token
	}
	return ""
}

// askStatus asks a node at an address for clients, and returns its state and its cluster. A node that did not say so has
// no worker.
func (a *asker) askStatus(ctx context.Context, t target) (w clusterview.WorkerReport, cluster string) {
	w = clusterview.WorkerReport{Worker: -1, Address: t.addr, Asked: clusterview.NoAnswer}
	stats, err := askStats(ctx, credentials.Client{TLS: a.access.tls, Token: a.lineToken(t)}, t.addr, nodesTime)
	var silent *silentError
	var reply *replyError
	switch {
	case err == nil && stats["state"] != "":
		describeStats(&w, stats)
		return w, stats["cluster"]
	case err == nil:
		w.Asked, w.Why = clusterview.AnotherNode, "its reply to STATS has no state"
	case errors.As(err, &reply) && accessAdvice(reply) != "":
		w.Asked, w.Why = clusterview.AccessDenied, clusterview.Clean(reply.line)
	case ctx.Err() != nil || errors.As(err, &silent) && silent.late:
		w.Asked, w.Why = clusterview.TimedOut, fmt.Sprintf("timed out after %s", nodesTime)
	case errors.As(err, &silent):
		w.Why = clusterview.Clean(silent.why)
	default:
		w.Asked, w.Why = clusterview.AnotherNode, clusterview.Clean(plain(err.Error()))
	}
	return w, ""
}

// describeStats fills in what STATS says.
func describeStats(w *clusterview.WorkerReport, stats map[string]string) {
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
		Phase: node.Phase(stats["state"]), Ready: stats["ready"] == "true", Cause: node.Cause(stats["cause"]),
		LeaseLeftMs: number("lease_left_ms"), ReservedLeftMs: number("reserved_ms"),
		ZooKeeper: node.ZooKeeperSnapshot{OK: stats["zookeeper_ok"] == "true"},
	}
	s.Code, s.Reason, _ = strings.Cut(strings.TrimPrefix(stats["reason"], "-"), " ")
	if stats["degraded"] != "" {
		s.Degraded = strings.Split(stats["degraded"], ",")
	}
	ids := int64(0)
	if n := number("ids"); n != nil {
		ids = *n
	}
	w.Asked, w.Says = clusterview.Answered, clusterview.NewAnswer(s, ids)
	if n := number("worker"); n != nil {
		w.Worker = int(*n)
	}
	if n := number("term"); n != nil {
		w.Term = *n
	}
	if w.State = clusterview.Disconnected; s.ZooKeeper.OK {
		w.State = clusterview.Live
	}
	w.Name, w.Node, w.Version, w.Phase = clusterview.Clean(stats["name"]), clusterview.Clean(stats["node"]), clusterview.Clean(stats["version"]), w.Says.Phase
	w.ReportAgeMs, w.ClockOffsetMs, w.ClockUncertaintyMs = number("heartbeat_age_ms"), decimals("clock_offset_ms"), decimals("clock_uncertainty_ms")
}
