package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/poll"
	"github.com/flaked/flaked/internal/ops/web"
)

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

// keeping returns the reply of a node that keeps a token, on one connection after the other.
func keeping(token, status string) func(string) string {
	known := false
	return func(line string) string {
		switch given, is := strings.CutPrefix(line, "AUTH "); {
		case is && given == token:
			known = true
			return "OK\n"
		case is:
			return "-WRONGPASS wrong token\n"
		case !known:
			return "-NOAUTH this node needs a token\n"
		}
		return status
	}
}

func TestAskWorkers(t *testing.T) {
	another := func(s *node.Snapshot) { s.Node = "x" }
	moved := func(s *node.Snapshot) { s.Worker = new(8) }
	rows := []struct {
		name      string
		reply     func(string) string
		state     health.WorkerState
		asked     health.Outcome
		says, why string
	}{
		{"ready", says(answer()), health.Live, health.Answered, "ready", ""},
		{"behind", says(answer(behind)), health.Disconnected, health.Answered, "not ready: clock-behind\ufffd[2J", ""},
		{"without ZooKeeper", says(answer(cutOff)), health.Live, health.Answered, "ready, but no ZooKeeper, from-cache", ""},
		{"requires a token", keeping("s3cret", answer()), health.Live, health.Answered, "ready", ""},
		{"requires another", keeping("x", answer()), health.Live, health.AccessDenied, "access denied",
			"-WRONGPASS wrong token"},
		{"requires TLS", says(replies.ErrNeedsTLS.Line() + "\n"), health.Live, health.AccessDenied, "access denied",
			replies.ErrNeedsTLS.Line()},
		{"another worker by now", says(answer(moved)), health.Live, health.AnotherNode, "another node", ""},
		{"another node", says(answer(another)), health.Live, health.AnotherNode, "another node", ""},
		{"stopped", says(answer()), health.Stopped, "", "", ""},
		{"refuses", says("-BUSY x\n"), health.Live, health.NoAnswer, "no answer", "-BUSY x"},
		{"not a node", says("hello\n"), health.Live, health.AnotherNode, "another node", "its reply to STATUS is not a node's"},
		{"HTTP", says("HTTP/1.1 400 Bad Request\n"), health.Live, health.NoAnswer, "no answer", poll.ErrHTTP.Error()},
		{"closes", says(""), health.Live, health.NoAnswer, "no answer", "the connection was closed without a reply"},
		{"silent", says("hang"), health.Live, health.TimedOut, "timed out", "timed out"},
	}
	goodNode := fakeNode(t, "tcp", "127.0.0.1:0", keeping("s3cret", answer()))
	onlyTLS, hangs := fakeNode(t, "tcp", "127.0.0.1:0", says(replies.ErrNeedsTLS.Line()+"\n")),
		fakeNode(t, "tcp", "127.0.0.1:0", says("hang"))
	workers := []health.WorkerReport{
		{Host: "here", State: health.Live, Address: nobody},
		{Host: "here", State: health.Live},
		{Host: "other", State: health.Live, Address: "unix:/run/flaked.sock,127.0.0.1:7609"},
		{Worker: 7, Node: "n1", Host: "here", State: health.Live, Address: nobody + "," + goodNode},
		{Worker: 7, Node: "n1", Host: "here", State: health.Live, Address: onlyTLS + "," + hangs + "," + goodNode},
	}
	first := len(workers)
	for _, row := range rows {
		workers = append(workers, health.WorkerReport{Worker: 7, Node: "n1", Host: "here", State: row.state,
			Address: fakeNode(t, "tcp", "127.0.0.1:0", func(line string) string {
				if strings.HasPrefix(line, "AUTH ") && !strings.HasPrefix(row.name, "requires") {
					return "OK\n"
				}
				return row.reply(line)
			})})
	}
	(&poll.Asker{Host: "here", Token: "s3cret", Advice: accessAdvice}).AskWorkers(t.Context(), health.ClusterReport{ClusterSnapshot: node.ClusterSnapshot{Name: "default", UUID: "u"}}, workers)
	for i, want := range []string{"no answer: connection refused", "no address: its record names no address",
		"no address: unix:/run/flaked.sock,127.0.0.1:7609 of other cannot be reached from here", "answered: ", "answered: "} {
		if got := string(workers[i].Outcome) + ": " + workers[i].Why; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for i, row := range rows {
		w := workers[first+i]
		if w.Outcome != row.asked || w.SaysText() != row.says || !strings.HasPrefix(w.Why, row.why) || row.why == "" && w.Why != "" ||
			(w.Says != nil) != (row.asked == health.Answered) {
			t.Errorf("%s: %q, %q, %q, want %+v", row.name, w.Outcome, w.SaysText(), w.Why, row)
		}
	}
	if a := workers[first+1].Says; a == nil || a.Reason != "-CLOCK the clock is behind\ufffdbehind_ms=3" ||
		a.Degraded[0] != "disk\ufffd" || a.IDs != 42 {
		t.Errorf("%+v", a)
	}
	const want = "nodes asked: 6 answered, 4 did not answer (connection refused), 1 did not answer in time, 2 denied " +
		"access (-WRONGPASS wrong token. Give a token that the node knows, with --token-file FILE or FLAKED_TOKEN), 3 replaced by another node (its reply to STATUS is not a node's), " +
		"2 without an address for this machine (its record names no address)"
	if got := askedLine(workers); got != want {
		t.Errorf("%s", got)
	}
}
