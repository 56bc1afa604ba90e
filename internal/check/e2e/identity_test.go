package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goclient "github.com/flaked/flaked/client"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// twins are two clusters with a sequence of the same name. An address of the first one goes to a node of the second
// one.
type twins struct {
	t        *testing.T
	one, two *harness.Site
	a, b, x  *harness.Node // a and b are of the first cluster, and x is of the second one
	admin    string
	most     int64            // the highest value of the first cluster before a died
	source   *goclient.Client // of the first cluster, at both addresses
	uuids    [2]string
}

// longLease is longer than a node lets a client wait, so that the client gets the reason.
const longLease = 9 * time.Second

func newTwins(t *testing.T) *twins {
	t.Helper()
	connect := zktest.Chroot(t, zktest.Shared(t))
	slow := []string{"--heartbeat", "500ms", "--confirm-time", "2s"}
	w := &twins{t: t, admin: fmt.Sprintf("127.0.0.1:%d", zktest.Port(t)),
		one: harness.NewSite(t, connect, append(slow, "--cluster", "one")...),
		two: harness.NewSite(t, connect, append(slow, "--cluster", "two")...)}
	nodes := w.one.OnPorts(2)
	if ordered.PreferredAddress([]string{nodes[0].Listen, nodes[1].Listen}, harness.Plain) != nodes[0].Listen {
		slices.Reverse(nodes) // else a gives the sequence to b as soon as it hears of b
	}
	w.a, w.b, w.x = nodes[0], nodes[1], w.two.OnPorts(1)[0]
	w.a.Flags = append(w.a.Flags, "--admin", w.admin)
	w.a.Start().Ready() // before b, so that it has the lower worker
	for _, n := range []*harness.Node{w.b, w.x} {
		n.Start().Ready()
	}
	for i, s := range []*harness.Site{w.one, w.two} {
		name := []string{"one", "two"}[i]
		s.Command("seq", "create", harness.Plain, "--mode", "ordered", "--lease", longLease.String(), "--cluster", name).Wants(t, 0,
			"created sequence")
		line, err := []*harness.Node{w.a, w.x}[i].Ask("WORKER")
		_, uuid, ok := strings.Cut(line, "cluster_uuid=")
		if err != nil || !ok {
			t.Fatalf("%q, %v", line, err)
		}
		w.uuids[i] = uuid
	}
	return w
}

// next takes a value from a node.
func (w *twins) next(n *harness.Node, within time.Duration) (int64, error) {
	c := &harness.Client{Node: n, Timeout: within}
	defer c.Close()
	line, err := c.Ask("NEXT " + harness.Plain)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(line, 10, 64)
}

// served waits until a node gives a value, and returns it.
func (w *twins) served(n *harness.Node) (v int64) {
	w.t.Helper()
	harness.Eventually(w.t, n.Name+" gives values", func() bool {
		var err error
		v, err = w.next(n, harness.CallTimeout)
		return err == nil
	})
	return v
}

// useBoth makes a the owner, and has b and the Go client ask it over connections that stay.
func (w *twins) useBoth() {
	w.t.Helper()
	w.served(w.a)
	for range 300 {
		w.most = max(w.most, w.served(w.a))
	}
	var err error
	if w.source, err = goclient.New(goclient.Config{Addrs: []string{w.a.Listen, w.b.Listen}}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.source.Close)
	v, err := w.source.Sequence(harness.Plain).Next(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.id()
	w.most = max(w.most, v, w.served(w.b))
	line, err := w.b.Ask("SEQ " + harness.Plain)
	if err != nil || !strings.Contains(line, "owner="+w.a.Listen+" ") {
		w.t.Fatalf("%q, %v: the owner is not a", line, err)
	}
	w.served(w.x)
}

// id returns the worker of an ID of the Go client.
func (w *twins) id() int64 {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), harness.CallTimeout)
	defer cancel()
	id, err := w.source.Next(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.one.IDs.Worker(id)
}

// takesTheAddress kills a, and starts x at its addresses.
func (w *twins) takesTheAddress() {
	w.t.Helper()
	w.x.Stop()
	w.a.Kill()
	w.x.Listen, w.x.Flags = w.a.Listen, append(w.x.Flags, "--admin", w.admin)
	w.x.Start().Ready()
	if v := w.served(w.x); v >= w.most {
		w.t.Fatalf("the second cluster is at %d already, and the first one at %d: that is no test", v, w.most)
	}
}

// wrong fails the test unless a text names both clusters.
func (w *twins) wrong(who, text string) {
	w.t.Helper()
	if !strings.Contains(text, "two") || !strings.Contains(text, w.uuids[1]) || !strings.Contains(text, w.uuids[0]) {
		w.t.Errorf("%s: the error does not name both clusters: %q", who, text)
	}
}

// A node dies, and its address is given to a node of another cluster, which has a sequence of the same name. Nobody who
// belongs to the first cluster uses what it answers.
func TestAnotherClusterAtTheAddressOfADeadNode(t *testing.T) {
	t.Parallel()
	w := newTwins(t)
	w.useBoth()
	w.takesTheAddress()

	// The other node passes requests on to the owner, until its lease is over.
	if v, err := w.next(w.b, longLease); err != nil {
		w.wrong("b", err.Error())
	} else if v <= w.most { // else the machine is so slow that the lease is over
		t.Errorf("b gives %d, and the first cluster had given %d", v, w.most)
	}
	w.asked(w.a.Listen)
	if v := w.served(w.b); v <= w.most {
		t.Errorf("b gives %d, and the first cluster had given %d", v, w.most)
	} else {
		w.most = v
	}
	for range 50 {
		v, err := w.source.Sequence(harness.Plain).Next(t.Context())
		if err != nil || v <= w.most {
			t.Fatalf("the Go client got %d, %v, and the first cluster had given %d", v, err, w.most)
		}
		w.most = v
		if got := w.id(); got != int64(w.b.Worker()) {
			t.Fatalf("the Go client got an ID of worker %d, which is not b's", got)
		}
	}
}

// asked asks at the address for values and IDs of the first cluster, with all that can compare.
func (w *twins) asked(addr string) {
	w.t.Helper()
	only, err := goclient.New(goclient.Config{Addrs: []string{addr}, Cluster: w.uuids[0]})
	if err != nil {
		w.t.Fatal(err)
	}
	defer only.Close()
	for range 2 { // on a new connection each
		if id, err := only.Next(w.t.Context()); err == nil {
			w.t.Errorf("the Go client got %d", id)
		} else {
			w.wrong("the Go client", err.Error())
		}
		if v, err := only.Sequence(harness.Plain).Next(w.t.Context()); err == nil {
			w.t.Errorf("the Go client got %d", v)
		}
	}
	both, err := goclient.New(goclient.Config{Addrs: []string{w.b.Listen, addr}})
	if err != nil {
		w.t.Fatal(err)
	}
	defer both.Close()
	if id, err := both.Next(w.t.Context()); err == nil {
		w.t.Errorf("a Go client with addresses of two clusters got %d", id)
	} else {
		w.wrong("a Go client with addresses of two clusters", err.Error())
	}
	for _, args := range [][]string{{"get"}, {"seq", "next", harness.Plain}, {"bench", "--duration", "200ms", "--warmup", "0s"}} {
		r := harness.Execute(w.t, harness.Shipped.Binary(w.t), append(args, "--addr", addr, "--cluster", w.uuids[0])...)
		if r.Code != 1 || r.Stdout != "" {
			w.t.Errorf("flaked %v: exit %d, %s", args, r.Code, r.Stdout)
		}
		w.wrong("flaked "+args[0], r.Stderr)
	}
	r := harness.Execute(w.t, harness.Shipped.Binary(w.t), "status", "--addr", addr, "--addr", w.b.Listen)
	if r.Code != 1 || r.Stdout != "" {
		w.t.Errorf("flaked status of both addresses: exit %d, %s", r.Code, r.Stdout)
	}
	w.wrong("flaked status of both addresses", r.Stderr)
	w.status()
}

// status reads the first cluster's records, and asks at the address of a.
func (w *twins) status() {
	w.t.Helper()
	r := w.one.Command("status", "--cluster", "one", "-o", "json")
	var report health.Report
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
		w.t.Fatalf("%v: %s%s", err, r.Stdout, r.Stderr)
	}
	found := false
	for _, k := range report.Workers {
		if k.Admin != w.admin {
			continue
		}
		found = true
		if k.Says != nil || k.Outcome != health.AnotherNode {
			w.t.Errorf("flaked status uses the answer of another cluster: %+v", k)
		}
		w.wrong("flaked status", k.Why)
	}
	if !found {
		w.t.Errorf("flaked status does not show the dead node: %s", r.Stdout)
	}
	w.wrong("flaked status", w.one.Command("status", "--cluster", "one").Stdout)
}
