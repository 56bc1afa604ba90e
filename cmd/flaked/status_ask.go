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

// Nodes are asked all at once, and those that have not answered in time are
// left out: status is not to wait for them.
const (
	askTime  = 800 * time.Millisecond
	askMost  = 128 // at a time
	askBytes = 1 << 20
)

// What came of asking a node, in workerReport.Asked.
const (
	askedNot      = ""
	askedAnswered = "answered"
	askedSilent   = "no answer"
	askedLate     = "out of time"
	askedOther    = "another node" // is what answers at its address
	askedDenied   = "not let in"   // without a token
)

// answer is what a node says of one of its workers, out of /v1/status.
type answer struct {
	// Ready: a GET would be answered with an ID. Else Reason is what it would
	// be refused with, and Cause the same in a word.
	Ready  bool       `json:"ready"`
	Reason string     `json:"reason"`
	Cause  node.Cause `json:"cause"`
	Phase  string     `json:"phase"`
	// Degraded is what is not as it should be, in words as of /v1/status.
	Degraded []string `json:"degraded"`
	// LeaseLeftMs and ReservedLeftMs are how long the node may serve on without
	// ZooKeeper and without its disk.
	LeaseLeftMs    *int64 `json:"lease_left_ms"`
	ReservedLeftMs *int64 `json:"reserved_left_ms"`
	// ZooKeeperOK: its last heartbeat was acknowledged.
	ZooKeeperOK bool  `json:"zookeeper_ok"`
	IDs         int64 `json:"ids"`
}

// askFlags are for commands that ask nodes; see nodeAsker.
func askFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "no-ask", Usage: "read ZooKeeper only, and ask no node", DisableDefaultText: true, EnvVars: env("no-ask")},
		tokenFileFlag("`FILE` with a token for the nodes; to their admin addresses it goes in the clear (the token itself, for nodes on this machine and at --addr only: FLAKED_TOKEN)"),
	}
}

// asker asks nodes for what they know of themselves.
type asker struct {
	host string // this machine's name
	// token is brought to nodes on this machine, and to others only if it is
	// meant for them: it crosses the network in the clear, to wherever
	// ZooKeeper's records say.
	token      string
	everywhere bool
	client     *http.Client
}

// nodeAsker is what the flags say, nil where that is to ask nobody.
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

// where a node's HTTP can be reached from here, "" if it cannot.
func (a *asker) where(w workerReport) string { return a.reach(w.Admin, w.Host) }

// reach returns where an address of a node on a machine can be dialled from here,
// "" if it cannot. What is on loopback is another machine's unless the node is on
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

// ask joins what nodes say to the workers of a report: of those that may run.
func (a *asker) ask(ctx context.Context, workers []workerReport) {
	byAddress := make(map[string][]*workerReport)
	for i := range workers {
		w := &workers[i]
		if w.State == stateLive || w.State == stateDetached {
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

// take takes from a node's answer what it says of a worker. Whoever answers at
// the address may be another node by now, or have another worker.
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

// says is what a node says of itself in a word or two.
func (w workerReport) says() string {
	switch {
	case w.Says == nil:
		return w.Asked
	case !w.Says.Ready:
		return "not ready: " + string(w.Says.Cause)
	}
	// The rest of the report has clocks and freezes, and whose they are.
	troubles := slices.DeleteFunc(slices.Clone(w.Says.Degraded), func(trouble string) bool {
		return trouble == node.TroubleOffset || trouble == node.TroubleFrozen
	})
	if len(troubles) > 0 {
		return "ready, but " + strings.Join(troubles, ", ")
	}
	return "ready"
}

// asked is a line on who was asked, for people.
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
		case w.State == stateLive || w.State == stateDetached:
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
	add(silent, "did not")
	add(late, fmt.Sprintf("not within %v and left out", askTime))
	add(denied, "asked for a token (--token-file)")
	add(other, "not any more where another node answers")
	add(unreachable, "without an address that can be reached from here")
	if len(parts) == 0 {
		return ""
	}
	return "nodes asked themselves: " + strings.Join(parts, ", ")
}
