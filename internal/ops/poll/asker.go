package poll

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/internal/ops/web"
)

// Nodes are asked concurrently, at maxAsked addresses at a time, by STATUS at their addresses for clients.
const (
	askTime    = 800 * time.Millisecond // for all nodes of a cluster
	nodesTime  = 2 * time.Second        // for each node of --addr
	maxAsked   = 128
	minAskTime = 100 * time.Millisecond // for each address, within askTime
)

// Asker asks nodes for their own state.
type Asker struct {
	// Host is this machine's name. Without one, nobody on loopback is asked.
	Host string
	// Token is sent to nodes on this machine, and with Everywhere also to others. Without TLS
	// it crosses the network in the clear, to any address that a record in ZooKeeper names.
	Token      string
	Everywhere bool
	// TLS is nil for plain TCP. TLSErr is the reason why it cannot be used. With an error, no node can be asked.
	TLS    *tls.Config
	TLSErr error
	// Advice returns what to do about a failure to secure a connection, or about a node that refuses clients without a
	// token or without TLS, after a full stop. It returns "" for any other error.
	Advice func(error) string
}

// reachAll returns those of the addresses for clients of a node on machine that can be dialled from here, at most 8.
func (a *Asker) reachAll(addresses, machine string) (all []string) {
	for addr := range strings.SplitSeq(addresses, ",") {
		if at := a.reach(addr, machine); at != "" && len(all) < 8 {
			all = append(all, at)
		}
	}
	return all
}

// reach returns where to dial an address of a node on machine from here, "" if that is impossible. A unix socket and a
// loopback address can be dialled only if machine is this one.
func (a *Asker) reach(addr, machine string) string {
	here := a.Host != "" && machine == a.Host
	network, address, err := dialog.SplitAddr(addr)
	if err != nil || network == "unix" {
		if err != nil || !here {
			return ""
		}
		return addr
	}
	host, port, _ := net.SplitHostPort(address)
	ip, _ := netip.ParseAddr(host) // the zero Addr for a name
	switch {
	case host == "" || ip.IsValid() && ip.IsUnspecified():
		if host = machine; here {
			host = "127.0.0.1"
		}
		if host == "" {
			return ""
		}
	case dialog.IsLoopback(address) && !here:
		return ""
	}
	return net.JoinHostPort(host, port)
}

// Workers adds what the nodes themselves say to the workers of a report. It asks the nodes of
// workers that are live or disconnected. Each answer names its cluster, which must be ours.
func (a *Asker) Workers(ctx context.Context, ours view.ClusterReport, workers []view.WorkerReport) {
	var running []*view.WorkerReport
	var addresses [][]string
	for i := range workers {
		if w := &workers[i]; w.State == view.Live || w.State == view.Disconnected {
			running, addresses = append(running, w), append(addresses, a.reachAll(w.Address, w.Host))
		}
	}
	for i, replies := range a.askAll(ctx, addresses) {
		w := running[i]
		got := best(replies, w.Address, w.Host)
		// Another node may answer at the address by now, or the node may hold another worker.
		switch s, is := got.doc.Node, got.doc.Cluster; {
		case got.asked != view.Answered:
		case is.UUID != "" && is.UUID != ours.UUID:
			got.asked, got.why = view.AnotherNode, otherCluster(is, nameAndUUID(ours.Name, ours.UUID))
		case s.Node == w.Node && s.Worker != nil && *s.Worker == w.Worker:
			w.Says = answerOf(got.doc)
		default:
			got.asked = view.AnotherNode
		}
		w.Asked, w.Why = got.asked, got.why
	}
}

// statusReply is the answer of a node to STATUS.
type statusReply struct {
	doc web.Status
	// more is the reply to a second request.
	more string
	// asked is the outcome, a result of view, and why explains it if there is no answer.
	asked, why string
}

// askAll asks nodes at all of their addresses, each node until one address answers: another may require TLS, or hang.
// It returns the outcome at each address.
func (a *Asker) askAll(ctx context.Context, nodes [][]string) [][]statusReply {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	most := timeOfOne(len(slices.Concat(nodes...)))
	var asks []func()
	got := make([][]statusReply, len(nodes))
	for i, addresses := range nodes {
		got[i] = make([]statusReply, len(addresses))
		open, answered := context.WithCancel(ctx)
		defer answered()
		for k, addr := range addresses {
			asks = append(asks, func() {
				bounded, cancel := context.WithTimeout(open, most)
				defer cancel()
				if got[i][k] = a.ask(bounded, addr, false, "STATUS"); got[i][k].asked == view.Answered {
					answered()
				}
			})
		}
	}
	allAtOnce(len(asks), func(i int) { asks[i]() })
	return got
}

// timeOfOne returns the time that one of n addresses has to answer. If many hang, there must be time left for those
// behind them.
func timeOfOne(n int) time.Duration {
	if n <= maxAsked {
		return askTime
	}
	return max(askTime/time.Duration(n/maxAsked+2), minAskTime)
}

// best returns what says most of the outcomes at the addresses of a node on machine.
func best(got []statusReply, addresses, machine string) statusReply {
	for _, of := range []func(s statusReply) bool{
		func(s statusReply) bool { return s.asked == view.Answered },
		func(s statusReply) bool { return s.asked != view.NoAnswer }, // says more
		func(s statusReply) bool { return true },
	} {
		if i := slices.IndexFunc(got, of); i >= 0 {
			return got[i]
		}
	}
	none := statusReply{asked: view.NoAddress, why: "its record names no address"}
	if addresses != "" {
		none.why = fmt.Sprintf("%s of %s cannot be reached from here", view.Short(addresses), cmp.Or(view.Short(machine), "its machine"))
	}
	return none
}

// ask sends a node STATUS, and perhaps a second request for one line. named means that the user named the address.
func (a *Asker) ask(ctx context.Context, addr string, named bool, requests ...string) (got statusReply) {
	if a.TLSErr != nil {
		return statusReply{asked: view.TLSFailed, why: a.TLSErr.Error()}
	}
	node := Node{dialog.Client{TLS: a.TLS, Token: a.tokenFor(addr, named)}, addr, nodesTime}
	lines, err := node.Ask(ctx, strings.Join(requests, "\n"), len(requests))
	if err != nil {
		got.asked, got.why = a.Outcome(err)
		return got
	}
	doc, ok := ParseStatus(lines[0])
	if !ok {
		return statusReply{asked: view.AnotherNode, why: "its reply to STATUS is not a node's"}
	}
	return statusReply{doc: doc, more: strings.Join(lines[1:], ""), asked: view.Answered}
}

// tokenFor returns the token to send to an address, "" for none. named means that the user named the address.
func (a *Asker) tokenFor(addr string, named bool) string {
	// Anybody who can write the record could name a server with a certificate of a public authority, but not of one
	// that the user named.
	vouched := named || a.TLS != nil && a.TLS.RootCAs != nil
	if vouched || a.Everywhere || strings.HasPrefix(addr, "unix:") || dialog.IsLoopback(addr) {
		return a.Token
	}
	return ""
}

func answerOf(doc web.Status) *view.Answer {
	a := view.NewAnswer(doc.Node, doc.IDs)
	a.Sequences = doc.Sequences
	a.Dev = slices.ContainsFunc(doc.Problems, func(p view.Problem) bool { return p.Cause == view.Development.Cause })
	return a
}

// allAtOnce calls f with 0 to n-1, maxAsked at a time, and returns when all calls have ended.
func allAtOnce(n int, f func(i int)) {
	var asking errgroup.Group
	asking.SetLimit(maxAsked)
	for i := range n {
		asking.Go(func() error { f(i); return nil })
	}
	_ = asking.Wait() // always nil
}

// Outcome returns why there is no answer: one of the results of view, and details.
func (a *Asker) Outcome(err error) (asked, why string) {
	advice := a.Advice(err)
	reply, refused := errors.AsType[*ids.ReplyError](err)
	silent, isSilent := errors.AsType[*SilentError](err)
	switch {
	case refused && advice != "":
		return view.AccessDenied, view.Clean(reply.Line()) + advice
	case refused:
		return view.NoAnswer, view.Clean(reply.Line())
	case dialog.KindOf(err) == dialog.TimedOut, errors.Is(err, context.Canceled):
		if why = "timed out"; isSilent {
			why = silent.Why
		}
		return view.TimedOut, why
	case isSilent:
		why = silent.Why
	}
	if advice != "" {
		return view.TLSFailed, view.Clean(why) + advice
	}
	return view.NoAnswer, view.Clean(why)
}

// At asks a node at an address that the user named, and returns its state and its cluster. A node that did not say so
// has no worker.
func (a *Asker) At(ctx context.Context, addr string) (w view.WorkerReport, cluster node.ClusterSnapshot) {
	got := a.ask(ctx, addr, true, "STATUS")
	w = view.WorkerReport{Worker: -1, Address: addr, Asked: got.asked, Why: got.why}
	if got.asked == view.Answered {
		describe(&w, got.doc)
	}
	return w, got.doc.Cluster
}

// ParseStatus returns the document in a reply to STATUS, and whether it is a node's.
func ParseStatus(line string) (doc web.Status, ok bool) {
	err := json.Unmarshal([]byte(line), &doc)
	return doc, err == nil && doc.Node.Phase != ""
}

// describe fills in what a node says of itself.
func describe(w *view.WorkerReport, doc web.Status) {
	s := doc.Node
	w.Asked, w.Says = view.Answered, answerOf(doc)
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
