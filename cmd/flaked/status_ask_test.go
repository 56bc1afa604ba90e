package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
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

// change sets what differs in the state of a node.
type change = func(*node.Snapshot)

// answer returns the status of a node that serves, with changes.
func answer(changes ...change) string {
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
	text, _ := json.Marshal(doc)
	return string(text) + "\n"
}

func cutOff(s *node.Snapshot) {
	s.ZooKeeper.OK, s.Degraded = false, []string{"zookeeper", "from-cache"}
}

func starting(s *node.Snapshot) {
	s.Phase, s.Ready, s.Cause = node.Starting, false, node.CauseNoWorkerYet
	s.Worker, s.Term, s.LeaseLeftMs, s.ReservedLeftMs = nil, 0, nil, nil
}

// behind refuses, in words that a terminal must not get.
func behind(s *node.Snapshot) {
	s.Ready, s.Code, s.Reason, s.Cause = false, "CLOCK", "the clock is behind\nbehind_ms=3", "clock-behind\x1b[2J"
	s.Degraded = []string{"disk\x1b"}
}

// saying returns a handler that answers as such a node.
func saying(changes ...change) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/status" {
			fmt.Fprint(w, answer(changes...))
		}
	}
}

// requiring returns a handler that calls next for requests with a token, and answers others with a status.
func requiring(token string, denied int, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(denied)
			return
		}
		next(w, r)
	}
}

func TestAsk(t *testing.T) {
	ended := make(chan struct{})
	writing := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
	}
	hanging := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			writing(text)(w, r)
			w.(http.Flusher).Flush()
			<-ended
		}
	}
	another := func(s *node.Snapshot) { s.Node = "x" }
	moved := func(s *node.Snapshot) { s.Worker = new(8) }
	rows := []struct {
		name        string
		at          http.HandlerFunc
		state       string
		asked, says string
	}{
		{"ready", saying(), view.Live, view.Answered, "ready"},
		{"behind", saying(behind), view.Disconnected, view.Answered, "not ready: clock-behind\ufffd[2J"},
		{"without ZooKeeper", saying(cutOff), view.Live, view.Answered, "ready, but no ZooKeeper, from-cache"},
		{"requires a token", requiring("s3cret", http.StatusUnauthorized, saying()), view.Live, view.Answered, "ready"},
		{"requires another", requiring("x", http.StatusUnauthorized, saying()), view.Live, view.AccessDenied,
			"access denied"},
		{"forbids", requiring("x", http.StatusForbidden, saying()), view.Live, view.AccessDenied, "access denied"},
		{"another worker by now", saying(moved), view.Live, view.AnotherNode, "another node"},
		{"another node", saying(another), view.Live, view.AnotherNode, "another node"},
		{"stopped", saying(), view.Stopped, "", ""},
		{"not found", http.NotFound, view.Live, view.AnotherNode, "another node"},
		{"no JSON", writing("{"), view.Live, view.AnotherNode, "another node"},
		{"redirects", http.RedirectHandler("/v1/status?", http.StatusFound).ServeHTTP, view.Live, view.AnotherNode,
			"another node"},
		{"no end", writing(strings.Repeat(" ", 2<<20)), view.Live, view.AnotherNode, "another node"},
		{"silent", hanging(""), view.Live, view.TimedOut, "timed out"},
		{"slow", hanging("{"), view.Live, view.TimedOut, "timed out"},
	}
	workers := []view.WorkerReport{
		{Host: "here", State: view.Live, Admin: nobody}, {Host: "here", State: view.Live}, // the last has no address
	}
	for _, row := range rows {
		server := httptest.NewServer(row.at)
		t.Cleanup(server.Close)
		workers = append(workers, view.WorkerReport{Worker: 7, Node: "n1", Host: "here", State: row.state,
			Admin: server.Listener.Addr().String()})
	}
	t.Cleanup(func() { close(ended) }) // before the servers close
	a := newAsker(nil, nil)
	a.host, a.token = "here", "s3cret"
	a.askWorkers(t.Context(), view.ClusterReport{Name: "default", UUID: "u"}, workers)
	if workers[0].Asked != view.NoAnswer || workers[1].Asked != "" {
		t.Errorf("%+v", workers[:2])
	}
	for i, row := range rows {
		w := workers[i+2]
		if w.Asked != row.asked || w.SaysText() != row.says || (w.Says != nil) != (row.asked == view.Answered) {
			t.Errorf("%s: %q, %q, want %+v", row.name, w.Asked, w.SaysText(), row)
		}
	}
	if a := workers[3].Says; a == nil || a.Reason != "-CLOCK the clock is behind\ufffdbehind_ms=3" ||
		a.Degraded[0] != "disk\ufffd" || a.IDs != 42 {
		t.Errorf("%+v", a)
	}
}
