package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/internal/ops/web"
)

func TestWhereNodesAreAsked(t *testing.T) {
	for _, row := range []struct{ addresses, host, want string }{
		{"10.0.0.1:7609", "h2", "10.0.0.1:7609"},
		{"10.0.0.1:7609", "", "10.0.0.1:7609"},
		{"ids-2.example:7609", "h2", "ids-2.example:7609"},
		{"127.0.0.1:7609", "here", "127.0.0.1:7609"},
		{"127.0.0.1:7609", "h2", ""}, // another machine's, where somebody else may answer
		{"127.8.0.1:7609", "h2", ""},
		{"[::1]:7609", "h2", ""},
		{"[::1]:7609", "here", "[::1]:7609"},
		{"localhost:7609", "h2", ""},
		{"localhost:7609", "here", "localhost:7609"},
		{"0.0.0.0:7609", "h2", "h2:7609"},
		{"[::]:7609", "h2", "h2:7609"},
		{":7609", "h2", "h2:7609"},
		{":7609", "here", "127.0.0.1:7609"},
		{":7609", "", ""},
		{"", "here", ""},
		{"http://10.0.0.1:7610", "h2", ""},
		{"unix:/run/flaked.sock", "here", "unix:/run/flaked.sock"},
		{"unix:/run/flaked.sock", "h2", ""},
		{"unix:relative", "here", ""},
		{"unix:/run/flaked.sock,127.0.0.1:7609,10.0.0.1:7609", "h2", "10.0.0.1:7609"},
		{"unix:/run/flaked.sock,127.0.0.1:7609", "here", "unix:/run/flaked.sock 127.0.0.1:7609"},
	} {
		a := &asker{host: "here"}
		if got := strings.Join(a.reachAll(row.addresses, row.host), " "); got != row.want {
			t.Errorf("%q of %q: %q, want %q", row.addresses, row.host, got, row.want)
		}
	}
	nameless := &asker{}
	if got := nameless.reachAll("127.0.0.1:7609,unix:/run/flaked.sock", ""); got != nil {
		t.Errorf("a machine without a name asks %q", got)
	}
}

// The token goes to this machine, to where --token-file and --addr send it, and by TLS to servers of an
// authority that the user named. A public authority does not vouch for an address in a record.
func TestWhoGetsTheToken(t *testing.T) {
	own, public := &tls.Config{RootCAs: x509.NewCertPool()}, &tls.Config{}
	for _, row := range []struct {
		name, at          string
		tls               *tls.Config
		everywhere, named bool
		sent              bool
	}{
		{"this machine", "127.0.0.1:7609", nil, false, false, true},
		{"a unix socket", "unix:/run/flaked.sock", nil, false, false, true},
		{"another one", "10.0.0.1:7609", nil, false, false, false},
		{"another one of --addr", "10.0.0.1:7609", nil, false, true, true},
		{"another one, with --token-file", "10.0.0.1:7609", nil, true, false, true},
		{"another one, with --tls", "10.0.0.1:7609", public, false, false, false},
		{"another one, with --tls-ca", "10.0.0.1:7609", own, false, false, true},
	} {
		a := newAsker(row.tls, nil)
		a.token, a.everywhere = "s3cret", row.everywhere
		if got := a.tokenFor(row.at, row.named); (got == "s3cret") != row.sent || got != "" && !row.sent {
			t.Errorf("%s: %q", row.name, got)
		}
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
		name             string
		reply            func(string) string
		state            string
		asked, says, why string
	}{
		{"ready", says(answer()), view.Live, view.Answered, "ready", ""},
		{"behind", says(answer(behind)), view.Disconnected, view.Answered, "not ready: clock-behind\ufffd[2J", ""},
		{"without ZooKeeper", says(answer(cutOff)), view.Live, view.Answered, "ready, but no ZooKeeper, from-cache", ""},
		{"requires a token", keeping("s3cret", answer()), view.Live, view.Answered, "ready", ""},
		{"requires another", keeping("x", answer()), view.Live, view.AccessDenied, "access denied",
			"-WRONGPASS wrong token"},
		{"requires TLS", says(replies.ErrNeedsTLS.Line() + "\n"), view.Live, view.AccessDenied, "access denied",
			replies.ErrNeedsTLS.Line()},
		{"another worker by now", says(answer(moved)), view.Live, view.AnotherNode, "another node", ""},
		{"another node", says(answer(another)), view.Live, view.AnotherNode, "another node", ""},
		{"stopped", says(answer()), view.Stopped, "", "", ""},
		{"refuses", says("-BUSY x\n"), view.Live, view.NoAnswer, "no answer", "-BUSY x"},
		{"not a node", says("hello\n"), view.Live, view.AnotherNode, "another node", "its reply to STATUS is not a node's"},
		{"HTTP", says("HTTP/1.1 400 Bad Request\n"), view.Live, view.NoAnswer, "no answer", errHTTP.Error()},
		{"closes", says(""), view.Live, view.NoAnswer, "no answer", "the connection was closed without a reply"},
		{"silent", says("hang"), view.Live, view.TimedOut, "timed out", "timed out"},
	}
	goodNode := fakeNode(t, "tcp", "127.0.0.1:0", keeping("s3cret", answer()))
	onlyTLS, hangs := fakeNode(t, "tcp", "127.0.0.1:0", says(replies.ErrNeedsTLS.Line()+"\n")),
		fakeNode(t, "tcp", "127.0.0.1:0", says("hang"))
	workers := []view.WorkerReport{
		{Host: "here", State: view.Live, Address: nobody},
		{Host: "here", State: view.Live},
		{Host: "other", State: view.Live, Address: "unix:/run/flaked.sock,127.0.0.1:7609"},
		{Worker: 7, Node: "n1", Host: "here", State: view.Live, Address: nobody + "," + goodNode},
		{Worker: 7, Node: "n1", Host: "here", State: view.Live, Address: onlyTLS + "," + hangs + "," + goodNode},
	}
	first := len(workers)
	for _, row := range rows {
		workers = append(workers, view.WorkerReport{Worker: 7, Node: "n1", Host: "here", State: row.state,
			Address: fakeNode(t, "tcp", "127.0.0.1:0", func(line string) string {
				if strings.HasPrefix(line, "AUTH ") && !strings.HasPrefix(row.name, "requires") {
					return "OK\n"
				}
				return row.reply(line)
			})})
	}
	a := newAsker(nil, nil)
	a.host, a.token = "here", "s3cret"
	a.askWorkers(t.Context(), view.ClusterReport{ClusterSnapshot: node.ClusterSnapshot{Name: "default", UUID: "u"}}, workers)
	for i, want := range []string{"no answer: connection refused", "no address: its record names no address",
		"no address: unix:/run/flaked.sock,127.0.0.1:7609 of other cannot be reached from here", "answered: ", "answered: "} {
		if got := workers[i].Asked + ": " + workers[i].Why; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for i, row := range rows {
		w := workers[first+i]
		if w.Asked != row.asked || w.SaysText() != row.says || !strings.HasPrefix(w.Why, row.why) || row.why == "" && w.Why != "" ||
			(w.Says != nil) != (row.asked == view.Answered) {
			t.Errorf("%s: %q, %q, %q, want %+v", row.name, w.Asked, w.SaysText(), w.Why, row)
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

// However many addresses hang, at most maxAsked are asked at once.
func TestManyAddressesThatHang(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked, together atomic.Int64 // together: until the first connection ends
	var serving sync.WaitGroup
	serving.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			asked.Add(1)
			serving.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(io.Discard, conn)
				together.CompareAndSwap(0, asked.Load())
			})
		}
	})
	hangs := strings.TrimSuffix(strings.Repeat(l.Addr().String()+",", 8), ",")
	var workers []view.WorkerReport
	for range 3 * maxAsked / 8 {
		workers = append(workers, view.WorkerReport{Host: "here", State: view.Live, Address: hangs})
	}
	a := newAsker(nil, nil)
	a.host = "here"
	a.askWorkers(t.Context(), view.ClusterReport{}, workers)
	l.Close()
	serving.Wait()
	// The client may open its next connections before the first one is seen to end.
	if n := together.Load(); n == 0 || n > 2*maxAsked || workers[0].Asked != view.TimedOut {
		t.Errorf("%d addresses were asked at once, and the first node: %q", n, workers[0].Asked)
	}
}

// If all addresses but the last ones hang, those still have a turn.
func TestTimeOfAnAddressThatHangs(t *testing.T) {
	for _, n := range []int{0, 1, maxAsked, maxAsked + 1, 2 * maxAsked, 2*maxAsked + 1, 5 * maxAsked, 7 * maxAsked} {
		most, before := timeOfOne(n), time.Duration(max(n-1, 0)/maxAsked)
		if most < minAskTime || before*most+most > askTime || n <= maxAsked && most != askTime {
			t.Errorf("%d addresses: %v each", n, most)
		}
	}
	if most := timeOfOne(16384); most != minAskTime {
		t.Errorf("%v", most)
	}
}
