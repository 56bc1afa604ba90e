package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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

	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/internal/ops/view"
)

// Nodes are asked concurrently. status does not wait for those that are slower than askTime.
const (
	askTime  = 800 * time.Millisecond
	askMost  = 128 // at a time
	askBytes = 1 << 20
)

// httpsPrefix begins an admin address that uses TLS. One without it uses plain HTTP.
const httpsPrefix = "https://"

// askFlags returns the flags that nodeAsker reads.
func askFlags() []cli.Flag {
	return append(in(security, append([]cli.Flag{
		tokenFileFlag("`FILE` with a token for the nodes. It is sent to their admin addresses, encrypted only to those with https://. " +
			"FLAKED_TOKEN gives the token itself, which is sent only to nodes on this machine, to that of --addr, and with --tls-ca " +
			"to https:// addresses"),
	}, tlsFlags("tls", "use TLS to addresses for clients, except unix sockets. Any of the flags below implies it. "+
		"Admin addresses with https:// always use TLS", "the node's")...)...),
		&cli.BoolFlag{Name: "no-ask", Usage: "read only ZooKeeper, and ask no node", DisableDefaultText: true})
}

// asker asks nodes for their own state.
type asker struct {
	host string // this machine's name
	// token is sent to nodes on this machine, and with everywhere also to others. Without TLS
	// it crosses the network in the clear, to any address that a record in ZooKeeper names.
	token      string
	everywhere bool
	access     lineAccess
	client     *http.Client
}

// nodeAsker returns the asker that the flags describe, nil for --no-ask.
func nodeAsker(c *cli.Context) (*asker, error) {
	if c.Bool("no-ask") {
		return nil, nil
	}
	token, err := nodeToken(c)
	if err != nil {
		return nil, err
	}
	a := newAsker(newLineAccess(c))
	a.token, a.everywhere = token, c.String("token-file") != ""
	return a, nil
}

func newAsker(access lineAccess) *asker {
	host, _ := os.Hostname() // without one, nobody on loopback is asked
	return &asker{host: host, access: access, client: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 1 << 16, TLSClientConfig: access.tls},
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
		if host = machine; here || host == "" {
			host = "127.0.0.1"
		}
		if !here && machine == "" {
			return ""
		}
	case host == "localhost" || err == nil && ip.IsLoopback():
		if !here {
			return ""
		}
	}
	return scheme + net.JoinHostPort(host, port)
}

// ask adds what the nodes themselves say to the workers of a report. It asks the nodes of
// workers that are live or disconnected.
func (a *asker) ask(ctx context.Context, workers []view.WorkerReport) {
	byAddress := make(map[string][]*view.WorkerReport)
	for i := range workers {
		w := &workers[i]
		if w.State == view.Live || w.State == view.Disconnected {
			if at := a.reach(w.Admin, w.Host); at != "" {
				byAddress[at] = append(byAddress[at], w)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	addresses := slices.Collect(maps.Keys(byAddress))
	allAtOnce(len(addresses), func(i int) {
		outcome, why, doc := view.TimedOut, "", admin.Status{}
		if ctx.Err() == nil {
			outcome, why, doc = a.get(ctx, addresses[i])
		}
		for _, w := range byAddress[addresses[i]] {
			w.Asked, w.Why = outcome, why
			if outcome == view.Answered {
				take(w, doc)
			}
		}
	})
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
	vouched := secure && a.access.tls != nil && a.access.tls.RootCAs != nil
	if a.token != "" && (a.everywhere || vouched || isLoopback(req.URL.Host)) {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	return req, nil
}

// get asks a node at its admin address. why explains an outcome if TLS is the reason for it.
func (a *asker) get(ctx context.Context, at string) (outcome, why string, doc admin.Status) {
	if strings.HasPrefix(at, httpsPrefix) && a.access.err != nil {
		return view.TLSFailed, a.access.err.Error(), doc
	}
	req, err := a.request(ctx, at, "/v1/status")
	if err != nil {
		return view.NoAnswer, "", doc
	}
	resp, err := a.client.Do(req)
	var body []byte
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(io.LimitReader(resp.Body, askBytes))
	}
	switch {
	case err != nil:
		outcome, why = failedOutcome(err)
		return outcome, why, doc
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return view.AccessDenied, "", doc
	case resp.StatusCode != http.StatusOK || json.Unmarshal(body, &doc) != nil:
		return view.AnotherNode, "", doc
	}
	return view.Answered, "", doc
}

// failedOutcome returns the outcome of a request that ended with err. why explains it if TLS is
// the reason.
func failedOutcome(err error) (outcome, why string) {
	advice, insecure := tlsAdvice(err)
	var request *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return view.TimedOut, ""
	case errors.Is(err, http.ErrSchemeMismatch):
		return view.AnotherNode, "" // the node's record says that it uses TLS
	case !insecure:
		return view.NoAnswer, ""
	case errors.As(err, &request):
		err = request.Err // without the URL
	}
	return view.TLSFailed, view.Clean(plain(err.Error())) + ". " + advice
}

// take copies a node's own answer on a worker. Another node may answer at the address by
// now, or the node may hold another worker.
func take(w *view.WorkerReport, doc admin.Status) {
	if s := doc.Node; s.Node == w.Node && s.Worker != nil && *s.Worker == w.Worker {
		w.Says = view.NewAnswer(s, doc.IDs)
		return
	}
	w.Asked = view.AnotherNode
}

// askedLine returns a line on the nodes that were asked, "" for none.
func askedLine(workers []view.WorkerReport) string {
	n, why := make(map[string]int), ""
	for _, w := range workers {
		if w.Asked != "" || w.State == view.Live || w.State == view.Disconnected {
			n[w.Asked]++
		}
		why = cmp.Or(why, w.Why)
	}
	var parts []string
	for _, row := range [][2]string{
		{view.Answered, "answered"}, {view.NoAnswer, "did not answer"}, {view.TimedOut, "did not answer in time"},
		{view.AccessDenied, "denied access (--token-file, or --tls-cert and --tls-key)"},
		{view.TLSFailed, "failed in TLS (" + why + ")"},
		{view.AnotherNode, "replaced by another node"}, {view.NoStatus, "without STATUS"},
		{"", "without an address that can be reached from here"},
	} {
		if n[row[0]] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[row[0]], row[1]))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "nodes asked: " + strings.Join(parts, ", ")
}
