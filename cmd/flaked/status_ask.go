package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/internal/ops/web"
)

// Nodes are asked concurrently, askMost at a time.
const (
	askTime   = 800 * time.Millisecond // for all nodes of a cluster, at their admin addresses
	nodesTime = 2 * time.Second        // for each node at its address for clients
	askMost   = 128
)

// httpsPrefix begins an admin address that uses TLS. One without it uses plain HTTP.
const httpsPrefix = "https://"

// askFlags returns the flags that nodeAsker reads.
func askFlags() []cli.Flag {
	return in(security, append([]cli.Flag{
		tokenFileFlag("`FILE` with a token for the nodes. It is sent to their admin addresses, encrypted only to " +
			"those with https://. FLAKED_TOKEN gives the token itself, which is sent only to nodes on this " +
			"machine, to that of --addr, " +
			"and with --tls-ca to https:// addresses"),
	}, tlsFlags("tls", "use TLS to addresses for clients, except unix sockets. Any of the flags below implies it. "+
		"Admin addresses with https:// always use TLS", "the node's")...)...)
}

// asker asks nodes for their own state.
type asker struct {
	host string // this machine's name
	// token is sent to nodes on this machine, and with everywhere also to others. Without TLS
	// it crosses the network in the clear, to any address that a record in ZooKeeper names.
	token      string
	everywhere bool
	// tls is nil for plain TCP to addresses for clients, and the system's authorities for HTTPS. tlsErr is the error of
	// the TLS flags. With an error, neither can be dialled.
	tls    *tls.Config
	tlsErr error
	client *http.Client
}

// nodeAsker returns the asker that the flags describe.
func nodeAsker(c *cli.Context) (*asker, error) {
	token, err := nodeToken(c)
	if err != nil {
		return nil, err
	}
	a := newAsker(clientTLS(c, "tls"))
	a.token, a.everywhere = token, c.String("token-file") != ""
	return a, nil
}

func newAsker(config *tls.Config, tlsErr error) *asker {
	host, _ := os.Hostname() // without one, nobody on loopback is asked
	return &asker{host: host, tls: config, tlsErr: tlsErr, client: &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 1 << 16,
			TLSClientConfig: config},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// reach returns where to dial addr from here, "" if that is impossible. addr is an address of a
// node on machine, and https:// at its beginning is kept. A loopback address can be dialled only
// if machine is this one.
func (a *asker) reach(addr, machine string) string {
	scheme := ""
	if rest, secure := strings.CutPrefix(addr, httpsPrefix); secure {
		scheme, addr = httpsPrefix, rest
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	here := a.host != "" && machine == a.host
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && ip.IsUnspecified():
		if host = machine; here {
			host = "127.0.0.1"
		}
		if host == "" {
			return ""
		}
	case (host == "localhost" || err == nil && ip.IsLoopback()) && !here:
		return ""
	}
	return scheme + net.JoinHostPort(host, port)
}

// reachLine returns the first of a node's addresses for clients that can be
// reached from here, "" if none can.
func (a *asker) reachLine(addresses, host string) string {
	for addr := range strings.SplitSeq(addresses, ",") {
		network, address, err := dialog.SplitAddr(addr)
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

// askWorkers adds what the nodes themselves say to the workers of a report. It asks the nodes of
// workers that are live or disconnected, at their admin addresses. Each answer names its cluster, which must be ours.
func (a *asker) askWorkers(ctx context.Context, ours view.ClusterReport, workers []view.WorkerReport) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	allAtOnce(len(workers), func(i int) {
		w := &workers[i]
		at := a.reach(w.Admin, w.Host)
		if w.State != view.Live && w.State != view.Disconnected || at == "" {
			return
		}
		var doc web.Status
		if doc, w.Asked, w.Why = a.overHTTP(ctx, at); w.Asked != view.Answered {
			return
		}
		// Another node may answer at the address by now, or the node may hold another worker.
		switch s := doc.Node; {
		case doc.Cluster.UUID != "" && doc.Cluster.UUID != ours.UUID:
			w.Asked, w.Why = view.AnotherNode, otherCluster(doc.Cluster, named(ours.Name, ours.UUID))
		case s.Node == w.Node && s.Worker != nil && *s.Worker == w.Worker:
			w.Says = answerOf(doc)
		default:
			w.Asked = view.AnotherNode
		}
	})
}

func answerOf(doc web.Status) *view.Answer {
	a := view.NewAnswer(doc.Node, doc.IDs)
	a.Sequences = doc.Sequences
	a.Dev = slices.ContainsFunc(doc.Problems, func(p view.Problem) bool { return p.Cause == view.Development.Cause })
	return a
}

// allAtOnce calls f with 0 to n-1, askMost at a time, and returns when all calls have ended.
func allAtOnce(n int, f func(i int)) {
	var asking errgroup.Group
	asking.SetLimit(askMost)
	for i := range n {
		asking.Go(func() error { f(i); return nil })
	}
	_ = asking.Wait() // always nil
}

// overHTTP asks a node for its status at its admin address. It returns the document, or why there is none.
func (a *asker) overHTTP(ctx context.Context, at string) (doc web.Status, asked, why string) {
	if strings.HasPrefix(at, httpsPrefix) && a.tlsErr != nil {
		return doc, view.TLSFailed, a.tlsErr.Error()
	}
	req, err := a.request(ctx, at, "/v1/status")
	if err != nil {
		return doc, view.NoAnswer, ""
	}
	resp, err := a.client.Do(req)
	var body []byte
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxReply))
	}
	switch {
	case err != nil:
		asked, why = outcome(err)
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		asked = view.AccessDenied
	case resp.StatusCode != http.StatusOK || json.Unmarshal(body, &doc) != nil:
		asked = view.AnotherNode
	default:
		asked = view.Answered
	}
	return doc, asked, why
}

// request returns a GET request for a path at an admin address.
func (a *asker) request(ctx context.Context, at, path string) (*http.Request, error) {
	base, secure := "http://"+at, strings.HasPrefix(at, httpsPrefix)
	if secure {
		base = at
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, err
	}
	// Anybody who can write the record could name a server with a certificate of a public
	// authority, but not of one that the user named.
	vouched := secure && a.tls != nil && a.tls.RootCAs != nil
	if token := a.tokenFor(req.URL.Host, vouched); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// tokenFor returns the token to send to an address, "" for none. vouched means that the user vouches for the address.
func (a *asker) tokenFor(addr string, vouched bool) string {
	if vouched || a.everywhere || strings.HasPrefix(addr, "unix:") || dialog.IsLoopback(addr) {
		return a.token
	}
	return ""
}

// overLine sends a request for one line to a node's address for clients. named means that the user named the address.
func (a *asker) overLine(ctx context.Context, addr string, named bool, request string) (line, asked, why string) {
	if a.tlsErr != nil {
		return "", view.TLSFailed, a.tlsErr.Error()
	}
	node := nodeAt{dialog.Client{TLS: a.tls, Token: a.tokenFor(addr, named)}, addr, nodesTime}
	lines, err := node.ask(ctx, request, 1)
	if err != nil {
		asked, why = outcome(err)
		return "", asked, why
	}
	return lines[0], view.Answered, ""
}

// outcome returns why there is no answer: one of the results of view, and details.
func outcome(err error) (asked, why string) {
	tlsAdvice, insecure := tlsAdvice(err)
	reply, refused := errors.AsType[*ids.ReplyError](err)
	silent, isSilent := errors.AsType[*silentError](err)
	request, isHTTP := errors.AsType[*url.Error](err)
	switch {
	case refused && accessAdvice(reply) != "":
		return view.AccessDenied, view.Clean(reply.Line())
	case refused:
		return view.NoAnswer, view.Clean(reply.Line())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, context.Canceled):
		if why = "timed out"; isSilent {
			why = silent.why
		}
		return view.TimedOut, why
	case errors.Is(err, http.ErrSchemeMismatch):
		return view.AnotherNode, "" // the node's record says that it uses TLS
	case isSilent:
		why = silent.why
	case isHTTP:
		why = plain(request.Err.Error()) // without the URL
	}
	if insecure {
		return view.TLSFailed, view.Clean(why) + ". " + tlsAdvice
	}
	return view.NoAnswer, view.Clean(why)
}

// askStatus asks a node at an address for clients, and returns its state and its cluster. A node that did not
// say so has no worker.
func (a *asker) askStatus(ctx context.Context, addr string) (w view.WorkerReport, cluster node.ClusterSnapshot) {
	w = view.WorkerReport{Worker: -1, Address: addr}
	var line string
	if line, w.Asked, w.Why = a.overLine(ctx, addr, true, "STATUS"); w.Asked != view.Answered {
		return w, cluster
	}
	doc, ok := parseStatus(line)
	if !ok {
		w.Asked, w.Why = view.AnotherNode, "its reply to STATUS is not a node's"
		return w, cluster
	}
	describe(&w, doc)
	return w, doc.Cluster
}

// parseStatus returns the document in a reply to STATUS, and whether it is a node's.
func parseStatus(line string) (doc web.Status, ok bool) {
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

// askedLine returns a line on the nodes that were asked, "" for none.
func askedLine(workers []view.WorkerReport) string {
	n, failed := make(map[string]int), ""
	for _, w := range workers {
		if w.Asked != "" || w.State == view.Live || w.State == view.Disconnected {
			n[w.Asked]++
		}
		if w.Asked == view.TLSFailed {
			failed = w.Why
		}
	}
	var parts []string
	for _, row := range [][2]string{
		{view.Answered, "answered"}, {view.NoAnswer, "did not answer"}, {view.TimedOut, "did not answer in time"},
		{view.AccessDenied, "denied access (--token-file, or --tls-cert and --tls-key)"},
		{view.TLSFailed, "failed in TLS (" + failed + ")"}, {view.AnotherNode, "replaced by another node"},
		{"", "without an address that can be reached from here"},
	} {
		if n[row[0]] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[row[0]], row[1]))
		}
	}
	if len(parts) == 0 || n[view.Answered] > 0 && len(parts) == 1 {
		return "" // the verdict says it
	}
	return "nodes asked: " + strings.Join(parts, ", ")
}
