package clients

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/testkit/harness"
)

const (
	// callTime is the time limit of a call under load, and nodeTime that of a node.
	callTime = 2 * time.Second
	nodeTime = 400 * time.Millisecond
	// promised is the time within which calls succeed again after a fault. A loaded machine gets slack more.
	promised = time.Second
)

// TestRealNodes lets all clients call three nodes at the same time, while the nodes are killed, frozen and drained. A
// fourth one, the first that clients ask, wants another token.
func TestRealNodes(t *testing.T) {
	c := newCluster(t, "another-token", token, token, token)
	a, b := c.nodes[1], c.nodes[2]
	var addrs []string
	for _, n := range c.nodes {
		addrs = append(addrs, n.addr)
	}
	j := &judge{t: t, given: map[string]map[int64]string{}}
	for name, command := range drivers {
		j.watch(name, startDriver(t, name, command), addrs)
	}
	restart := func(nodes ...*realNode) {
		for _, n := range nodes {
			n.start()
		}
		for _, n := range nodes {
			n.ready(token)
		}
	}
	j.warm()
	j.during("before all faults", 3*time.Second, func() {})
	j.during("kill -9 of the node that is used", 2*time.Second, func() { a.signal(syscall.SIGKILL) })
	j.during("its restart", 2*time.Second, func() { restart(a) })
	j.during("SIGSTOP of the node that is used", 4*time.Second, func() { a.signal(syscall.SIGSTOP) })
	j.during("SIGCONT", 2*time.Second, func() { a.signal(syscall.SIGCONT); a.ready(token) })
	j.during("drain of the node that is used", 2*time.Second, func() { a.signal(syscall.SIGTERM) })
	j.during("kill -9 of the second node, too", 2*time.Second, func() { b.signal(syscall.SIGKILL) })
	j.during("the restart of both", 2*time.Second, func() { restart(a, b) })
	j.during("SIGSTOP of both", 4*time.Second, func() {
		a.signal(syscall.SIGSTOP)
		b.signal(syscall.SIGSTOP)
	})
	j.during("SIGCONT of both", 2*time.Second, func() {
		a.signal(syscall.SIGCONT)
		b.signal(syscall.SIGCONT)
		a.ready(token)
		b.ready(token)
	})
	j.during("a crash loop of the node that is used", 0, func() {
		for range 5 {
			a.signal(syscall.SIGKILL)
			a.start()
			harness.Pass(t.Context(), 400*time.Millisecond)
		}
		a.ready(token)
	})
	j.end()
}

// judge collects what the clients get, and checks it.
type judge struct {
	t       *testing.T
	watched []*watched

	mu    sync.Mutex                  // guards what follows, and the fields of watched
	given map[string]map[int64]string // who got a value, by sequence ("" for IDs) and value
}

// watched is a client under load.
type watched struct {
	name    string
	driver  *driver
	load    int
	success map[string]time.Time     // the last one, by op
	gap     map[string]time.Duration // the longest time without one in this phase, by op
	calls   map[string]int
	failed  int
	worst   float64 // the longest call, in ms
	errors  map[string]int
}

// watch begins the load of a client.
func (j *judge) watch(name string, d *driver, addrs []string) {
	w := &watched{name: name, driver: d, success: map[string]time.Time{}, gap: map[string]time.Duration{},
		calls: map[string]int{}, errors: map[string]int{}}
	j.watched = append(j.watched, w)
	a, err := d.call(map[string]any{"op": "open", "client": "load", "options": map[string]any{
		"addresses": addrs, "token": token, "node_timeout_ms": nodeTime.Milliseconds()}}, 0)
	if err != nil || a.Error != nil {
		j.t.Fatalf("%s: open: %v, %v", name, err, a.Error)
	}
	command := map[string]any{"op": "load", "client": "load", "callers": 8, "pause_ms": 15,
		"timeout_ms": callTime.Milliseconds(), "calls": []map[string]any{{"op": "next"}, {"op": "take", "n": 7},
			{"op": "seq_next", "name": "order"}, {"op": "seq_key", "name": "strict", "key": name + "-*"}}}
	var got chan answer
	if w.load, got, err = d.send(command, func(a answer) { j.line(w, a) }); err != nil {
		j.t.Fatal(err)
	}
	if a, err := d.wait(command, got, 0); err != nil || a.Error != nil {
		j.t.Fatalf("%s: load: %v, %v", name, err, a.Error)
	}
}

// warm blocks until each client has made some calls of each kind. A virtual machine starts slowly.
func (j *judge) warm() {
	j.t.Helper()
	cold := 0
	if !harness.Within(patience, func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		cold = slices.IndexFunc(j.watched, func(w *watched) bool { return w.calls["seq_key"] < 100 })
		for _, w := range j.watched {
			clear(w.gap)
		}
		return cold < 0
	}) {
		j.t.Fatalf("%s has not made 100 calls of each kind within %s", j.watched[cold].name, patience)
	}
}

// line checks the end of a call.
func (j *judge) line(w *watched, a answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	w.worst = max(w.worst, a.TookMs)
	if limit := callTime + slack; a.TookMs > float64(limit.Milliseconds()) {
		j.t.Errorf("%s: a call of %s took %.0f ms, its limit is %s", w.name, a.Op, a.TookMs, callTime)
	}
	if a.Error != nil {
		w.failed++
		w.errors[fmt.Sprintf("%s %s %s", a.Error.Kind, a.Error.Code, a.Error.Reason)]++
		if a.Error.Kind != "unavailable" || a.Error.Code != "" && replies.Index(ids.Code(a.Error.Code)) < 0 {
			j.t.Errorf("%s: %s fails with %v", w.name, a.Op, a.Error)
		}
		return
	}
	if want := map[bool]int{true: 7, false: 1}[a.Op == "take"]; len(a.Values) != want {
		j.t.Errorf("%s: %s gives %v", w.name, a.Op, a.Values)
	}
	if last, ok := w.success[a.Op]; ok {
		w.gap[a.Op] = max(w.gap[a.Op], now.Sub(last))
	}
	w.success[a.Op] = now
	w.calls[a.Op]++
	if j.given[a.Name] == nil {
		j.given[a.Name] = map[int64]string{}
	}
	for _, text := range a.Values {
		v, err := strconv.ParseInt(text, 10, 64)
		if by, twice := j.given[a.Name][v]; twice || err != nil {
			j.t.Errorf("%s: %s %s gives %s, which %s has got before (%v)", w.name, a.Op, a.Name, text, by, err)
		}
		j.given[a.Name][v] = w.name
	}
}

// during makes a fault and lets time pass. It checks that each client had success within the promised time again and
// again.
func (j *judge) during(what string, lasts time.Duration, fault func()) {
	j.t.Helper()
	fault()
	harness.Pass(j.t.Context(), lasts)
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	for _, w := range j.watched {
		text := ""
		for _, op := range []string{"next", "take", "seq_next", "seq_key"} {
			gap := w.gap[op]
			if last, ok := w.success[op]; ok {
				gap = max(gap, now.Sub(last))
			}
			if gap > promised+slack {
				j.t.Errorf("%s: %s had no success for %s during %s", w.name, op, gap, what)
			}
			text += fmt.Sprintf("  %s %4d ms", op, gap.Milliseconds())
		}
		clear(w.gap)
		j.t.Logf("%-34s %-8s longest time without success:%s", what, w.name, text)
	}
}

// end stops the loads, and prints what each client did.
func (j *judge) end() {
	for _, w := range j.watched {
		if a, err := w.driver.call(map[string]any{"op": "stop", "load": w.load}, callTime); err != nil || a.Error != nil {
			j.t.Errorf("%s: stop: %v, %v", w.name, err, a.Error)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, w := range j.watched {
		j.t.Logf("%-8s calls %v, failed %d %v, the longest call %.0f ms", w.name, w.calls, w.failed, w.errors, w.worst)
		for _, op := range []string{"next", "take", "seq_next", "seq_key"} {
			if w.calls[op] < 100 {
				j.t.Errorf("%s: only %d calls of %s succeeded", w.name, w.calls[op], op)
			}
		}
	}
	for name, values := range j.given {
		j.t.Logf("%d values of %q, none twice", len(values), name)
	}
}
