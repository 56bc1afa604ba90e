package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
)

// change sets what differs in the status of a node.
type change = func(*node.Snapshot)

// statusOf returns the status of a node that serves, with changes.
func statusOf(changes ...change) admin.Status {
	doc := admin.Status{IDs: 42, Cluster: node.ClusterSnapshot{Name: "default"}, Node: node.Snapshot{
		Name: "ids-1", Node: "n1", Phase: node.Serving, Ready: true, Worker: new(7), Term: 2,
		LeaseLeftMs: new(int64(60000)), ReservedLeftMs: new(int64(2500)),
		Clock:     node.ClockSnapshot{OffsetMs: new(-3.0), UncertaintyMs: new(2.0)},
		ZooKeeper: node.ZooKeeperSnapshot{OK: true, HeartbeatAgeMs: new(int64(400)), HeartbeatMs: 3000},
	}}
	doc.Version = "1.2.3"
	for _, change := range changes {
		change(&doc.Node)
	}
	return doc
}

func troubled(words ...string) change { return func(s *node.Snapshot) { s.Degraded = words } }

func cutOff(s *node.Snapshot) { s.ZooKeeper.OK = false }

func refusing(phase node.Phase, cause node.Cause) change {
	return func(s *node.Snapshot) {
		s.Phase, s.Ready, s.Cause = phase, false, cause
	}
}

func starting(s *node.Snapshot) {
	refusing(node.Starting, node.CauseNoWorkerYet)(s)
	s.Worker, s.Term, s.LeaseLeftMs, s.ReservedLeftMs = nil, 0, nil, nil
}

// answering returns the reply of such a node to STATUS.
func answering(t *testing.T, changes ...change) func(string) string {
	t.Helper()
	line, err := json.Marshal(statusOf(changes...))
	if err != nil {
		t.Fatal(err)
	}
	return says(string(line) + "\n")
}

// The token crosses the network in the clear, to any address in the cache. Only targets that
// it is meant for get it.
func TestTokenIsSentOnlyWhereMeant(t *testing.T) {
	for _, row := range []struct {
		name       string
		addr       string
		named      bool
		everywhere bool
		want       string
	}{
		{"loopback", "127.0.0.1:7609", false, false, "s3cret"},
		{"a socket", "unix:/run/flaked.sock", false, false, "s3cret"},
		{"elsewhere", "10.0.0.1:7609", false, false, ""},
		{"elsewhere, of --token-file", "10.0.0.1:7609", false, true, "s3cret"},
		{"elsewhere, of --addr", "10.0.0.1:7609", true, false, "s3cret"},
	} {
		a := &asker{token: "s3cret", everywhere: row.everywhere}
		if got := a.lineToken(target{addr: row.addr, named: row.named}); got != row.want {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

// described returns the report of such a node.
func described(changes ...change) view.WorkerReport {
	w := view.WorkerReport{Worker: -1, Address: "a:1"}
	describe(&w, statusOf(changes...))
	return w
}

func TestStatusBecomesAnAnswer(t *testing.T) {
	r := described()
	want := view.Answer{Ready: true, Phase: "serving", Degraded: []string{}, LeaseLeftMs: new(int64(60000)), ReservedLeftMs: new(int64(2500)), ZooKeeperOK: true, IDs: 42}
	if !reflect.DeepEqual(*r.Says, want) || r.Name != "ids-1" || r.Node != "n1" || r.Version != "1.2.3" || r.Worker != 7 || r.Term != 2 || r.State != view.Live ||
		*r.ReportAgeMs != 400 || r.HeartbeatMs != 3000 || *r.ClockOffsetMs != -3 || *r.ClockUncertaintyMs != 2 {
		t.Errorf("%+v, says %+v", r, r.Says)
	}
	for _, row := range []struct {
		name    string
		changes []change
		says    string
	}{
		{"ready", nil, "ready"},
		{"cut off", []change{cutOff, troubled("zookeeper", "from-cache")}, "ready, but no ZooKeeper, from-cache"},
		{"starting", []change{starting}, "not ready: no-worker-yet"},
		{"a terminal's codes", []change{refusing(node.Serving, "\x1b[2J")}, "not ready: \ufffd[2J"},
	} {
		if got := described(row.changes...).SaysText(); got != row.says {
			t.Errorf("%s: %q, not %q", row.name, got, row.says)
		}
	}
}

func TestAskStatus(t *testing.T) {
	a := newAsker(lineAccess{})
	a.token = "s3cret"
	for _, row := range []struct{ name, reply, asked, why string }{
		{"a node", answering(t)(""), view.Answered, ""},
		{"a node with a long status", answering(t, func(s *node.Snapshot) { s.ZooKeeper.Error = strings.Repeat("x", 2*maxReply) })(""), view.Answered, ""},
		{"an older release", "-ERR unknown command \"STATUS\", HELP lists them\n", view.NoStatus, "it does not know STATUS"},
		{"something else", "-ERR unknown command 'STATUS'\n", view.AnotherNode, "answered -ERR unknown command 'STATUS'"},
		{"no JSON", "hello\n", view.AnotherNode, "its reply to STATUS is not a node's"},
		{"the JSON of something else", "{}\n", view.AnotherNode, "its reply to STATUS is not a node's"},
		{"speaks TLS", "-ERR this port requires TLS. Connect with TLS\n", view.AccessDenied, "-ERR this port requires TLS. Connect with TLS"},
		{"asks for another token", "-WRONGPASS wrong token\n", view.AccessDenied, "-WRONGPASS wrong token"},
	} {
		addr := fakeNode(t, "tcp", "127.0.0.1:0", func(line string) string {
			if line == "AUTH s3cret" && row.asked != view.AccessDenied {
				return "OK\n"
			}
			return row.reply
		})
		if w, _ := a.askStatus(t.Context(), target{addr: addr}); w.Asked != row.asked || !strings.Contains(w.Why, row.why) || (w.Says != nil) != (row.asked == view.Answered) {
			t.Errorf("%s: %q, %q", row.name, w.Asked, w.Why)
		}
	}
	if w, _ := a.askStatus(t.Context(), target{addr: nobody}); w.Asked != view.NoAnswer || w.Why != "connection refused" {
		t.Errorf("%+v", w)
	}
}

func TestProblemsOfAskedNodes(t *testing.T) {
	const refused = "ZooKeeper cannot be reached: refused"
	for _, row := range []struct {
		name  string
		zk    string
		nodes []view.WorkerReport
		want  string
	}{
		{"all is well", "", []view.WorkerReport{described()}, ""},
		{"not ready", "", []view.WorkerReport{described(refusing(node.Serving, node.CauseClockWrong))}, "critical: worker 7 (ids-1) refuses to serve (clock-wrong): The machine's clock is wrong. Check with chronyc tracking, then set the clock right"},
		{"starting", "", []view.WorkerReport{described(starting)}, "critical: node ids-1 refuses to serve (no-worker-yet): Starting"},
		{"cut off", "", []view.WorkerReport{described(cutOff, troubled(node.TroubleZooKeeper))}, "critical: worker 7 (ids-1): The node has had no answer from ZooKeeper. Restore ZooKeeper, or the network to it, before the lease expires."},
		{"no ZooKeeper", refused, []view.WorkerReport{described(cutOff, troubled(node.TroubleZooKeeper))}, "critical: ZooKeeper cannot be reached, and the next lease expires in 1m0s. Check --zk (FLAKED_ZK), and"},
		{"no ZooKeeper from here", refused, []view.WorkerReport{described()}, "warning: ZooKeeper cannot be reached from here, but a node can reach it. Check --zk"},
	} {
		r := view.AssessNodes(row.zk, row.nodes, time.UnixMilli(t0))
		code, text := explain(t.Context(), degraded(r.Summary.Problems))
		if (code == exitOK) != (row.want == "") || !strings.Contains(text, row.want) {
			t.Errorf("%s: %d, %q", row.name, code, text)
		}
	}
}

func TestStatusOfAddresses(t *testing.T) {
	well, alone := fakeNode(t, "tcp", "127.0.0.1:0", answering(t)), fakeNode(t, "tcp", "127.0.0.1:0", answering(t, cutOff))
	older := fakeNode(t, "tcp", "127.0.0.1:0", says(unknownStatus+"\n"))
	call(t, "", "status", "--addr", well).wants(t, exitOK, "live   ready  400ms   -3ms +/- 2ms slow  1m0s", "")
	call(t, "", "status", "--addr", well, "--addr", alone).wants(t, exitDegraded, "nodes asked: 2 answered", "The node has had no answer from ZooKeeper")
	call(t, "", "status", "--addr", older).wants(t, exitDegraded, "no STATUS", "is unknown at "+older+" (it does not know STATUS, as an older release)")
	call(t, "", "status", "--addr", nobody).wants(t, exitUnreachable, "nodes asked: 1 did not answer", "no node answered: 1 problem\ncritical: The node does not answer at "+nobody+" (connection refused)")
	call(t, "", "status", "--addr", well, "--no-ask").wants(t, exitUsage, "", "--no-ask asks none")
	call(t, "", "status", "--zk", "127.0.0.1:1").wants(t, exitUnreachable, "", "`flaked status --addr HOST:PORT` asks nodes without ZooKeeper")
}
