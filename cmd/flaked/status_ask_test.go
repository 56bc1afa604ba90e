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

	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
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

// The token goes to this machine, to where --token-file sends it, and by TLS to servers of an
// authority that the user named. A public authority does not vouch for an address in a record.
func TestWhoGetsTheTokenOverHTTP(t *testing.T) {
	own, public := lineAccess{tls: &tls.Config{RootCAs: x509.NewCertPool()}}, lineAccess{tls: &tls.Config{}}
	for _, row := range []struct {
		name, at   string
		access     lineAccess
		everywhere bool
		want       string
	}{
		{"this machine", "127.0.0.1:7610", lineAccess{}, false, "http"},
		{"this machine by TLS", "https://127.0.0.1:7610", lineAccess{}, false, "https"},
		{"another one", "10.0.0.1:7610", own, false, ""},
		{"another one, with --token-file", "10.0.0.1:7610", lineAccess{}, true, "http"},
		{"another one by TLS", "https://10.0.0.1:7610", lineAccess{}, false, ""},
		{"another one by TLS, with --tls", "https://10.0.0.1:7610", public, false, ""},
		{"another one by TLS, with --tls-ca", "https://10.0.0.1:7610", own, false, "https"},
		{"another one by TLS, with --token-file", "https://10.0.0.1:7610", public, true, "https"},
	} {
		a := newAsker(row.access)
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
}

// saying returns a handler that answers as a node in this state.
func saying(state node.Snapshot) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/status" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(admin.Status{Node: state, IDs: 42})
	}
}

func snapshot(worker int, change func(*node.Snapshot)) node.Snapshot {
	s := node.Snapshot{Worker: &worker, Node: fmt.Sprintf("n%d", worker), Phase: node.Serving, Ready: true}
	if change != nil {
		change(&s)
	}
	return s
}

func TestAsk(t *testing.T) {
	ended := make(chan struct{})
	serve := func(h http.HandlerFunc) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	defer close(ended) // before the servers close
	silent := serve(func(http.ResponseWriter, *http.Request) { <-ended })
	well := serve(saying(snapshot(0, nil)))
	behind := serve(saying(snapshot(1, func(s *node.Snapshot) {
		s.Ready, s.Code, s.Reason, s.Cause, s.Degraded = false, "CLOCK", "the clock is behind\nbehind_ms=3", "clock-behind", []string{"disk\x1b"}
	})))
	rows := []struct {
		at, state, asked, says string
	}{
		{well, view.Live, view.Answered, "ready"},
		{behind, view.Disconnected, view.Answered, "not ready: clock-behind"},
		{serve(saying(snapshot(7, nil))), view.Live, view.AnotherNode, "another node"}, // has another worker by now
		{serve(saying(snapshot(3, func(s *node.Snapshot) { s.Node = "x" }))), view.Live, view.AnotherNode, "another node"},
		{serve(saying(snapshot(4, nil))), view.Stopped, "", ""},
		{serve(http.NotFound), view.Live, view.AnotherNode, "another node"},
		{serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{") }), view.Live, view.AnotherNode, "another node"},
		{serve(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+well+"/v1/status", http.StatusFound)
		}), view.Live, view.AnotherNode, "another node"},
		{serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", 2<<20)) }), view.Live, view.AnotherNode, "another node"},
		{"127.0.0.1:1", view.Live, view.NoAnswer, "no answer"},
		{silent, view.Live, view.TimedOut, "timed out"},
		{serve(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "{")
			w.(http.Flusher).Flush()
			<-ended
		}), view.Live, view.TimedOut, "timed out"},
		{serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }), view.Live, view.AccessDenied, "access denied"},
		{serve(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer s3cret" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			saying(snapshot(13, nil))(w, r)
		}), view.Live, view.Answered, "ready"},
		{"", view.Live, "", ""},
		{serve(saying(snapshot(15, func(s *node.Snapshot) { s.Degraded = []string{"clock-offset", "zookeeper", "frozen"} }))), view.Live, view.Answered, "ready, but no ZooKeeper"},
	}
	var workers []view.WorkerReport
	for i, row := range rows {
		workers = append(workers, view.WorkerReport{Worker: i, Node: fmt.Sprintf("n%d", i), Host: "here", Admin: row.at, State: row.state})
	}
	a := newAsker(lineAccess{})
	a.host, a.token = "here", "s3cret"
	a.ask(t.Context(), workers)
	for i, row := range rows {
		w := workers[i]
		if w.Asked != row.asked || w.SaysText() != row.says || (w.Says != nil) != (row.asked == view.Answered) {
			t.Errorf("%d: %q, %q, want %+v", i, w.Asked, w.SaysText(), row)
		}
	}
	if a := workers[1].Says; a == nil || a.Reason != "-CLOCK the clock is behind\ufffdbehind_ms=3" || a.Degraded[0] != "disk\ufffd" || a.IDs != 42 {
		t.Errorf("%+v", a)
	}
}
