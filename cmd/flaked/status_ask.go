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
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/clusterview"
)

// Nodes are asked concurrently. status does not wait for those that are slower than askTime.
const (
	askTime  = 800 * time.Millisecond
	askMost  = 128 // at a time
	askBytes = 1 << 20
)

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

// reach returns where to dial addr from here, "" if that is impossible. addr is an address of a
// node on machine. A loopback address can be dialled only if machine is this one.
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
func (a *asker) ask(ctx context.Context, workers []clusterview.WorkerReport) {
	byAddress := make(map[string][]*clusterview.WorkerReport)
	for i := range workers {
		w := &workers[i]
		if w.State == clusterview.Live || w.State == clusterview.Disconnected {
			if at := a.reach(w.Admin, w.Host); at != "" {
				byAddress[at] = append(byAddress[at], w)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	addresses := slices.Collect(maps.Keys(byAddress))
	allAtOnce(len(addresses), func(i int) {
		outcome, doc := clusterview.TimedOut, admin.Status{}
		if ctx.Err() == nil {
			outcome, doc = a.get(ctx, addresses[i])
		}
		for _, w := range byAddress[addresses[i]] {
			w.Asked = outcome
			if outcome == clusterview.Answered {
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

func (a *asker) get(ctx context.Context, at string) (string, admin.Status) {
	var doc admin.Status
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/v1/status", nil)
	if err != nil {
		return clusterview.NoAnswer, doc
	}
	if a.token != "" && (a.everywhere || isLoopback(at)) {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.client.Do(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return clusterview.TimedOut, doc
	}
	if err != nil {
		return clusterview.NoAnswer, doc
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, askBytes))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return clusterview.TimedOut, doc
	case err != nil:
		return clusterview.NoAnswer, doc
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return clusterview.AccessDenied, doc
	case resp.StatusCode != http.StatusOK || json.Unmarshal(body, &doc) != nil:
		return clusterview.AnotherNode, doc
	}
	return clusterview.Answered, doc
}

// take copies a node's own answer on a worker. Another node may answer at the address by
// now, or the node may hold another worker.
func take(w *clusterview.WorkerReport, doc admin.Status) {
	for _, s := range doc.Workers {
		if s.Node == w.Node && s.Worker != nil && *s.Worker == w.Worker {
			w.Says = clusterview.NewAnswer(s, doc.IDs)
			return
		}
	}
	w.Asked = clusterview.AnotherNode
}

// askedLine returns a line on the nodes that were asked, "" for none.
func askedLine(workers []clusterview.WorkerReport) string {
	n := make(map[string]int)
	for _, w := range workers {
		if w.Asked != "" || w.State == clusterview.Live || w.State == clusterview.Disconnected {
			n[w.Asked]++
		}
	}
	var parts []string
	for _, row := range [][2]string{
		{clusterview.Answered, "answered"}, {clusterview.NoAnswer, "did not answer"}, {clusterview.TimedOut, fmt.Sprintf("timed out after %v", askTime)},
		{clusterview.AccessDenied, "denied access (--token-file)"}, {clusterview.AnotherNode, "replaced by another node"},
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
