package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/internal/ops/web"
)

func TestWhereNodesAreAsked(t *testing.T) {
	for _, row := range []struct{ admin, host, want string }{
		{"10.0.0.1:7610", "h2", "10.0.0.1:7610"},
		{"10.0.0.1:7610", "", "10.0.0.1:7610"},
		{"ids-2.example:7610", "h2", "ids-2.example:7610"},
		{"127.0.0.1:7610", "here", "127.0.0.1:7610"},
		{"127.0.0.1:7610", "h2", ""}, // another machine's, where somebody else may answer
		{"127.8.0.1:7610", "h2", ""},
		{"[::1]:7610", "h2", ""},
		{"[::1]:7610", "here", "[::1]:7610"},
		{"localhost:7610", "h2", ""},
		{"localhost:7610", "here", "localhost:7610"},
		{"0.0.0.0:7610", "h2", "h2:7610"},
		{"[::]:7610", "h2", "h2:7610"},
		{":7610", "h2", "h2:7610"},
		{":7610", "here", "127.0.0.1:7610"},
		{":7610", "", ""},
		{"", "here", ""},
		{"rubbish", "here", ""},
		{"https://10.0.0.1:7610", "h2", "https://10.0.0.1:7610"},
		{"https://[::1]:7610", "here", "https://[::1]:7610"},
		{"https://[::1]:7610", "h2", ""},
		{"https://0.0.0.0:7610", "h2", "https://h2:7610"},
		{"https://:7610", "here", "https://127.0.0.1:7610"},
		{"https://", "here", ""},
		{"http://10.0.0.1:7610", "h2", ""},
	} {
		a := &asker{host: "here"}
		if got := a.reach(row.admin, row.host); got != row.want {
			t.Errorf("%q of %q: %q, want %q", row.admin, row.host, got, row.want)
		}
	}
	nameless := &asker{}
	if got := nameless.reach("127.0.0.1:7610", ""); got != "" {
		t.Errorf("a machine without a name asks %q", got)
	}
}

// The token goes to this machine, to where --token-file and --addr send it, and by TLS to servers of an
// authority that the user named. A public authority does not vouch for an address in a record.
func TestWhoGetsTheToken(t *testing.T) {
	own, public := &tls.Config{RootCAs: x509.NewCertPool()}, &tls.Config{}
	for _, row := range []struct {
		name, at   string
		tls        *tls.Config
		everywhere bool
		want       string
	}{
		{"this machine", "127.0.0.1:7610", nil, false, "http"},
		{"another one", "10.0.0.1:7610", own, false, ""},
		{"another one, with --token-file", "10.0.0.1:7610", nil, true, "http"},
		{"another one by TLS, with --tls", "https://10.0.0.1:7610", public, false, ""},
		{"another one by TLS, with --tls-ca", "https://10.0.0.1:7610", own, false, "https"},
	} {
		a := newAsker(row.tls, nil)
		a.token, a.everywhere = "s3cret", row.everywhere
		req, err := a.request(t.Context(), row.at, "/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if req.Header.Get("Authorization") == "Bearer s3cret" {
			got = req.URL.Scheme
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	a := &asker{token: "s3cret"}
	if a.tokenFor("10.0.0.1:7609", false) != "" || a.tokenFor("10.0.0.1:7609", true) == "" ||
		a.tokenFor("unix:/run/flaked.sock", false) == "" {
		t.Error("a socket and an address of --addr get the token, and no other address")
	}
}

// saying returns a handler that answers as a node in this state.
func saying(state node.Snapshot) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/status" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(web.Status{Node: state, IDs: 42})
	}
}

func snapshot(worker int, change func(*node.Snapshot)) node.Snapshot {
	s := node.Snapshot{Worker: &worker, Node: fmt.Sprintf("n%d", worker), Phase: node.Serving, Ready: true}
	if change != nil {
		change(&s)
	}
	return s
}

// askRow is a node at an admin address, and what comes of asking it.
type askRow struct{ at, state, asked, says string }

// askRows starts nodes. The row number is the worker.
func askRows(t *testing.T) []askRow {
	ended := make(chan struct{})
	serve := func(h http.HandlerFunc) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	silent := serve(func(http.ResponseWriter, *http.Request) { <-ended })
	well := serve(saying(snapshot(0, nil)))
	behind := serve(saying(snapshot(1, func(s *node.Snapshot) {
		s.Ready, s.Code, s.Reason, s.Cause, s.Degraded = false, "CLOCK", "the clock is behind\nbehind_ms=3",
			"clock-behind", []string{"disk\x1b"}
	})))
	rows := []askRow{
		{well, view.Live, view.Answered, "ready"},
		{behind, view.Disconnected, view.Answered, "not ready: clock-behind"},
		{serve(saying(snapshot(7, nil))), view.Live, view.AnotherNode, "another node"}, // has another worker by now
		{serve(saying(snapshot(3, func(s *node.Snapshot) { s.Node = "x" }))), view.Live, view.AnotherNode,
			"another node"},
		{serve(saying(snapshot(4, nil))), view.Stopped, "", ""},
		{serve(http.NotFound), view.Live, view.AnotherNode, "another node"},
		{serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{") }), view.Live, view.AnotherNode,
			"another node"},
		{serve(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+well+"/v1/status", http.StatusFound)
		}), view.Live, view.AnotherNode, "another node"},
		{serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", 2<<20)) }),
			view.Live, view.AnotherNode, "another node"},
		{"127.0.0.1:1", view.Live, view.NoAnswer, "no answer"},
		{silent, view.Live, view.TimedOut, "timed out"},
		{serve(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "{")
			w.(http.Flusher).Flush()
			<-ended
		}), view.Live, view.TimedOut, "timed out"},
		{serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }), view.Live,
			view.AccessDenied, "access denied"},
		{serve(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer s3cret" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			saying(snapshot(13, nil))(w, r)
		}), view.Live, view.Answered, "ready"},
		{"", view.Live, "", ""},
		{serve(saying(snapshot(15, func(s *node.Snapshot) {
			s.Degraded = []string{"clock-offset", "zookeeper",
				"frozen"}
		}))), view.Live, view.Answered, "ready, but no ZooKeeper"},
	}
	t.Cleanup(func() { close(ended) }) // before the servers close
	return rows
}

func TestAsk(t *testing.T) {
	rows := askRows(t)
	var workers []view.WorkerReport
	for i, row := range rows {
		workers = append(workers, view.WorkerReport{Worker: i, Node: fmt.Sprintf("n%d", i), Host: "here",
			Admin: row.at, State: row.state})
	}
	a := newAsker(nil, nil)
	a.host, a.token = "here", "s3cret"
	a.askWorkers(t.Context(), workers)
	for i, row := range rows {
		w := workers[i]
		if w.Asked != row.asked || w.SaysText() != row.says || (w.Says != nil) != (row.asked == view.Answered) {
			t.Errorf("%d: %q, %q, want %+v", i, w.Asked, w.SaysText(), row)
		}
	}
	if a := workers[1].Says; a == nil || a.Reason != "-CLOCK the clock is behind\ufffdbehind_ms=3" ||
		a.Degraded[0] != "disk\ufffd" || a.IDs != 42 {
		t.Errorf("%+v", a)
	}
}

// change sets what differs in the status of a node.
type change = func(*node.Snapshot)

// statusOf returns the status of a node that serves, with changes.
func statusOf(changes ...change) web.Status {
	doc := web.Status{IDs: 42, Cluster: node.ClusterSnapshot{Name: "default"}, Node: node.Snapshot{
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

// described returns the report of such a node.
func described(changes ...change) view.WorkerReport {
	w := view.WorkerReport{Worker: -1, Address: "a:1"}
	describe(&w, statusOf(changes...))
	return w
}

func TestStatusBecomesAnAnswer(t *testing.T) {
	r := described()
	want := view.Answer{Ready: true, Phase: "serving", Degraded: []string{}, LeaseLeftMs: new(int64(60000)),
		ReservedLeftMs: new(int64(2500)), ZooKeeperOK: true, IDs: 42}
	if !reflect.DeepEqual(*r.Says, want) || r.Name != "ids-1" || r.Node != "n1" || r.Version != "1.2.3" ||
		r.Worker != 7 || r.Term != 2 || r.State != view.Live ||
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
	a := newAsker(nil, nil)
	a.token = "s3cret"
	for _, row := range []struct{ name, reply, asked, why string }{
		{"a node", answering(t)(""), view.Answered, ""},
		{"a node with a long status", answering(t,
			func(s *node.Snapshot) { s.ZooKeeper.Error = strings.Repeat("x", 2*maxReply) })(""), view.Answered, ""},
		{"something else", "-ERR unknown command 'STATUS'\n", view.NoAnswer, "-ERR unknown command 'STATUS'"},
		{"no JSON", "hello\n", view.AnotherNode, "its reply to STATUS is not a node's"},
		{"the JSON of something else", "{}\n", view.AnotherNode, "its reply to STATUS is not a node's"},
		{"speaks TLS", "-ERR this port requires TLS. Connect with TLS\n", view.AccessDenied,
			"-ERR this port requires TLS. Connect with TLS"},
		{"asks for another token", "-WRONGPASS wrong token\n", view.AccessDenied, "-WRONGPASS wrong token"},
	} {
		addr := fakeNode(t, "tcp", "127.0.0.1:0", func(line string) string {
			if line == "AUTH s3cret" && row.asked != view.AccessDenied {
				return "OK\n"
			}
			return row.reply
		})
		if w, _ := a.askStatus(t.Context(), addr); w.Asked != row.asked || !strings.Contains(w.Why, row.why) ||
			(w.Says != nil) != (row.asked == view.Answered) {
			t.Errorf("%s: %q, %q", row.name, w.Asked, w.Why)
		}
	}
	if w, _ := a.askStatus(t.Context(), nobody); w.Asked != view.NoAnswer || w.Why != "connection refused" {
		t.Errorf("%+v", w)
	}
}
