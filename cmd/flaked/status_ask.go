package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/node"
)

// Nodes are asked concurrently. status does not wait for those that are slower than askTime.
const (
	askTime  = 800 * time.Millisecond
	askMost  = 128 // at a time
	askBytes = 1 << 20
)

// The results of asking a node, in workerReport.Asked.
const (
	askedNot      = ""
	askedAnswered = "answered"
	askedSilent   = "no answer"
	askedLate     = "timed out"
	askedOther    = "another node"  // answers at its address
	askedDenied   = "access denied" // no valid token
)

// answer is what a node reports on one of its workers, from /v1/status.
type answer struct {
	// Ready means that a GET would be answered with an ID. Otherwise Reason is the text of the
	// refusal, and Cause is the reason in one word.
	Ready  bool       `json:"ready"`
	Reason string     `json:"reason"`
	Cause  node.Cause `json:"cause"`
	Phase  string     `json:"phase"`
	// Degraded lists what is wrong with the worker, in the words of /v1/status.
	Degraded []string `json:"degraded"`
	// LeaseLeftMs and ReservedLeftMs say how long the worker can still serve without ZooKeeper
	// and without its disk.
	LeaseLeftMs    *int64 `json:"lease_left_ms"`
	ReservedLeftMs *int64 `json:"reserved_left_ms"`
	// ZooKeeperOK means that the last heartbeat was acknowledged.
	ZooKeeperOK bool  `json:"zookeeper_ok"`
	IDs         int64 `json:"ids"`
}

// askFlags returns the flags that nodeAsker reads.
func askFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "no-ask", Usage: "read only ZooKeeper, and ask no node", DisableDefaultText: true, EnvVars: env("no-ask")},
		tokenFileFlag("`FILE` with a token for the nodes. It is sent to their admin addresses without encryption. FLAKED_TOKEN gives the token itself, which is sent only to nodes on this machine, and to that of --addr"),
	}
}

// asker asks nodes for their own state.
type asker struct {
	host string // this machine's name
	// token is sent to nodes on this machine, and with everywhere also to others. It crosses
	// the network in the clear, to any address that a record in ZooKeeper names.
	token      string
	everywhere bool
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
	a := newAsker()
	a.token, a.everywhere = token, c.String("token-file") != ""
	return a, nil
}

func newAsker() *asker {
	host, _ := os.Hostname() // without one, nobody on loopback is asked
	return &asker{host: host, client: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 1 << 16},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// where returns the address of a worker's HTTP from here, "" if it cannot be reached.
func (a *asker) where(w workerReport) string { return a.reach(w.Admin, w.Host) }

// reach returns where to dial addr from here, "" if that is impossible. addr is an address of a
// node on machine. A loopback address can be dialled only if machine is this one.
// this one.
func (a *asker) reach(addr, machine string) string {
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
	return net.JoinHostPort(host, port)
}

// ask adds what the nodes themselves say to the workers of a report. It asks the nodes of
// workers that are live or disconnected.
func (a *asker) ask(ctx context.Context, workers []workerReport) {
	byAddress := make(map[string][]*workerReport)
	for i := range workers {
		w := &workers[i]
		if w.State == stateLive || w.State == stateDisconnected {
			if at := a.where(*w); at != "" {
				byAddress[at] = append(byAddress[at], w)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	addresses := slices.Collect(maps.Keys(byAddress))
	allAtOnce(ctx, len(addresses), func(i int) {
		outcome, doc := askedLate, admin.Status{}
		if ctx.Err() == nil {
			outcome, doc = a.get(ctx, addresses[i])
		}
		for _, w := range byAddress[addresses[i]] {
			w.Asked = outcome
			if outcome == askedAnswered {
				w.take(doc)
			}
		}
	})
}

// allAtOnce calls f with 0 to n-1, askMost at a time until the context ends, and
// returns when all calls have ended.
func allAtOnce(ctx context.Context, n int, f func(i int)) {
	free := make(chan struct{}, askMost)
	var asking sync.WaitGroup
	for i := range n {
		asking.Go(func() {
			select {
			case free <- struct{}{}:
				defer func() { <-free }()
			case <-ctx.Done():
			}
			f(i)
		})
	}
	asking.Wait()
}

func (a *asker) get(ctx context.Context, at string) (string, admin.Status) {
	var doc admin.Status
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/v1/status", nil)
	if err != nil {
		return askedSilent, doc
	}
	if a.token != "" && (a.everywhere || isLoopback(at)) {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.client.Do(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return askedLate, doc
	}
	if err != nil {
		return askedSilent, doc
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, askBytes))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return askedLate, doc
	case err != nil:
		return askedSilent, doc
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return askedDenied, doc
	case resp.StatusCode != http.StatusOK || json.Unmarshal(body, &doc) != nil:
		return askedOther, doc
	}
	return askedAnswered, doc
}

// take copies a node's own answer on this worker. Another node may answer at the address by
// now, or the node may hold another worker.
func (w *workerReport) take(doc admin.Status) {
	for _, s := range doc.Workers {
		if s.Node == w.Node && s.Worker != nil && *s.Worker == w.Worker {
			w.Says = newAnswer(s, doc)
			return
		}
	}
	w.Asked = askedOther
}

func newAnswer(s node.Snapshot, doc admin.Status) *answer {
	a := &answer{
		Ready: s.Ready, Cause: node.Cause(clean(string(s.Cause))), Phase: clean(string(s.Phase)), Degraded: []string{},
		LeaseLeftMs: s.LeaseLeftMs, ReservedLeftMs: s.ReservedLeftMs, ZooKeeperOK: s.ZooKeeper.OK, IDs: doc.IDs,
	}
	if !s.Ready {
		a.Reason = clean(strings.TrimSpace("-" + s.Code + " " + s.Reason))
	}
	for _, d := range s.Degraded {
		a.Degraded = append(a.Degraded, clean(d))
	}
	return a
}

// says returns a node's own state in a few words.
func (w workerReport) says() string {
	switch {
	case w.Says == nil:
		return w.Asked
	case !w.Says.Ready:
		return "not ready: " + string(w.Says.Cause)
	}
	// Other parts of the report cover clock offsets and freezes.
	troubles := slices.DeleteFunc(slices.Clone(w.Says.Degraded), func(trouble string) bool {
		return trouble == node.TroubleOffset || trouble == node.TroubleFrozen
	})
	if len(troubles) > 0 {
		return "ready, but " + strings.Join(troubles, ", ")
	}
	return "ready"
}

// askedLine returns a line on the nodes that were asked, "" for none.
func askedLine(workers []workerReport) string {
	var answered, silent, late, denied, other, unreachable int
	for _, w := range workers {
		switch {
		case w.Says != nil:
			answered++
		case w.Asked == askedSilent:
			silent++
		case w.Asked == askedLate:
			late++
		case w.Asked == askedDenied:
			denied++
		case w.Asked == askedOther:
			other++
		case w.State == stateLive || w.State == stateDisconnected:
			unreachable++
		}
	}
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(answered, "answered")
	add(silent, "did not answer")
	add(late, fmt.Sprintf("timed out after %v", askTime))
	add(denied, "denied access (--token-file)")
	add(other, "replaced by another node")
	add(unreachable, "without an address that can be reached from here")
	if len(parts) == 0 {
		return ""
	}
	return "nodes asked: " + strings.Join(parts, ", ")
}
