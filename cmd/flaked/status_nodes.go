package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/ops/access"
	"github.com/flaked/flaked/internal/ops/view"
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
func (a *asker) askStatus(ctx context.Context, t target) (w view.WorkerReport, cluster string) {
	w = view.WorkerReport{Worker: -1, Address: t.addr, Asked: view.NoAnswer}
	creds := access.Client{TLS: a.access.tls, Token: a.lineToken(t)}
	lines, err := askAt(ctx, creds, t.addr, nodesTime, "STATUS", readDocument)
	var doc admin.Status
	var silent *silentError
	var reply *ids.ReplyError
	switch {
	case err == nil && json.Unmarshal([]byte(lines[0]), &doc) == nil && doc.Node.Phase != "":
		describe(&w, doc)
		return w, doc.Cluster.Name
	case err == nil:
		w.Asked, w.Why = view.AnotherNode, "its reply to STATUS is not a node's"
	case errors.As(err, &reply) && reply.Line() == unknownStatus:
		w.Asked, w.Why = view.NoStatus, "it does not know STATUS, as an older release"
	case errors.As(err, &reply) && accessAdvice(reply) != "":
		w.Asked, w.Why = view.AccessDenied, view.Clean(reply.Line())
	case ctx.Err() != nil || errors.As(err, &silent) && silent.late:
		w.Asked, w.Why = view.TimedOut, fmt.Sprintf("timed out after %s", nodesTime)
	case errors.As(err, &silent):
		w.Why = view.Clean(silent.why)
	default:
		w.Asked, w.Why = view.AnotherNode, view.Clean(plain(err.Error()))
	}
	return w, ""
}

// unknownStatus is the reply of a node that does not know STATUS: an older release, or a program that does not set
// lineproto.Config.Status.
const unknownStatus = `-ERR unknown command "STATUS", HELP lists them`

// readDocument reads the one line of a reply to STATUS, which may be longer than other replies.
func readDocument(r *bufio.Reader) ([]string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, askBytes)).ReadString('\n')
	return []string{strings.TrimRight(line, "\r\n")}, err
}

// describe fills in what a node says of itself.
func describe(w *view.WorkerReport, doc admin.Status) {
	s := doc.Node
	w.Asked, w.Says = view.Answered, view.NewAnswer(s, doc.IDs)
	if s.Worker != nil {
		w.Worker, w.Term = *s.Worker, s.Term
	}
	if w.State = view.Disconnected; s.ZooKeeper.OK {
		w.State = view.Live
	}
	w.Name, w.Node, w.Version = view.Clean(s.Name), view.Clean(s.Node), view.Clean(doc.Version)
	w.Phase = w.Says.Phase
	w.ReportAgeMs, w.HeartbeatMs = s.ZooKeeper.HeartbeatAgeMs, s.ZooKeeper.HeartbeatMs
	w.ClockOffsetMs, w.ClockUncertaintyMs = s.Clock.OffsetMs, s.Clock.UncertaintyMs
}
