package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/node"
)

func TestSeenTargets(t *testing.T) {
	a := &asker{host: "here"}
	at := func(worker int, host, address, admin string) clusterview.Seen {
		return clusterview.Seen{Worker: worker, Host: host, Address: address, Admin: admin}
	}
	var got []string
	for _, target := range a.seenTargets([]clusterview.Seen{
		at(0, "h1", "10.0.0.1:7609", "10.0.0.1:7610"),
		at(1, "h1", "10.0.0.1:7609", "10.0.0.1:7610"), // another worker of the same process
		at(2, "h2", "10.0.0.2:7609", "127.0.0.1:7610"),
		at(3, "here", "127.0.0.1:7609", "127.0.0.1:7610"),
		at(4, "h3", "127.0.0.1:7609", "off"),
		at(5, "h3", "unix:/run/flaked.sock,127.0.0.1:7609", ""),
		at(6, "here", "unix:/run/flaked.sock,127.0.0.1:7619", ""),
		at(7, "h4", "unix:/run/flaked.sock,10.0.0.4:7609", ""),
		at(8, "h5", "rubbish/,10.0.0.5", ""),
		at(9, "", "", ""),
		at(10, "h6", "10.0.0.6:7609", "https://10.0.0.6:7610"),
	}) {
		var workers []int
		for _, s := range target.seen {
			workers = append(workers, s.Worker)
		}
		got = append(got, fmt.Sprintf("%s %v %s", target.addr, target.admin, joinNumbers(workers)))
	}
	want := []string{
		"10.0.0.1:7610 true 0,1", "10.0.0.2:7609 false 2", "127.0.0.1:7610 true 3", " false 4", " false 5",
		"unix:/run/flaked.sock false 6", "10.0.0.4:7609 false 7", "10.0.0.5:7609 false 8", " false 9",
		"https://10.0.0.6:7610 true 10",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// statsLines returns a node's reply to STATS. Each value replaces the line of its name, and a
// name alone removes the line.
func statsLines(values ...string) string {
	lines := "version 1.2.3\nname ids-1\nnode n1\ncluster default\nlayout x\nstate serving\nready true\nworker 7\nterm 2\nreserved_ms 2500\n" +
		"lease_left_ms 60000\nzookeeper_ok true\nheartbeat_age_ms 400\nclock_offset_ms -3\nclock_uncertainty_ms 2\nids 42\n"
	for _, v := range values {
		name, _, _ := strings.Cut(v, " ")
		var kept strings.Builder
		for line := range strings.Lines(lines) {
			if !strings.HasPrefix(line, name+" ") {
				kept.WriteString(line)
			}
		}
		lines = kept.String()
		if v != name {
			lines += v + "\n"
		}
	}
	return lines + "END\n"
}

func answering(values ...string) func(string) string { return says(statsLines(values...)) }

// parsed returns the report of a node with these values in STATS.
func parsed(values ...string) clusterview.NodeReport {
	stats := map[string]string{}
	for line := range strings.Lines(statsLines(values...)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		stats[name] = value
	}
	return newNodeReport(target{addr: "a:1"}, clusterview.Answered, "", statsDocument(stats), time.UnixMilli(t0))
}

func TestStatsAreParsedIntoAnAnswer(t *testing.T) {
	r := parsed()
	want := clusterview.Answer{Ready: true, Phase: "serving", Degraded: []string{}, LeaseLeftMs: new(int64(60000)), ReservedLeftMs: new(int64(2500)), ZooKeeperOK: true, IDs: 42}
	if !reflect.DeepEqual(*r.Says, want) || r.Name != "ids-1" || r.Node != "n1" || r.Version != "1.2.3" || joinNumbers(r.Workers) != "7" ||
		*r.HeartbeatAgeMs != 400 || *r.ClockOffsetMs != -3 || *r.ClockUncertaintyMs != 2 || r.WorkersReady != 1 {
		t.Errorf("%+v, says %+v", r, r.Says)
	}
	for _, row := range []struct {
		name   string
		values []string
		says   string
	}{
		{"ready", nil, "ready"},
		{"cut off", []string{"zookeeper_ok false", "degraded zookeeper,from-cache"}, "ready, but no ZooKeeper, from-cache"},
		{"starting", []string{"state starting", "ready false", "reason -NOTREADY starting reason=no-worker-yet", "cause no-worker-yet", "worker", "lease_left_ms"}, "not ready: no-worker-yet"},
		{"a part of its workers", []string{"workers 1,2,3", "workers_ready 2"}, "ready (2 of 3 workers)"},
		{"all of its workers", []string{"workers 1,2,3", "workers_ready 3"}, "ready"},
		{"not the first of them", []string{"ready false", "reason -CLOCK x", "cause clock-behind", "workers 1,2", "workers_ready 1"}, "ready (1 of 2 workers)"},
		{"none of them", []string{"ready false", "reason -CLOCK x", "cause clock-behind", "workers 1,2", "workers_ready 0"}, "not ready: clock-behind"},
		{"a terminal's codes", []string{"ready false", "cause \x1b[2J"}, "not ready: \ufffd[2J"},
	} {
		if got := parsed(row.values...).SaysText(); got != row.says {
			t.Errorf("%s: %q, not %q", row.name, got, row.says)
		}
	}
	if s := parsed("ready false", "reason -CLOCK the clock is behind", "cause clock-behind").Says; s.Reason != "-CLOCK the clock is behind" || s.LeaseLeftMs == nil {
		t.Errorf("%+v", s)
	}
}

func TestAskTargets(t *testing.T) {
	host, _ := os.Hostname()
	a := newAsker(lineAccess{})
	a.token = "s3cret"
	line := func(reply func(string) string) target {
		return target{addr: fakeNode(t, "tcp", "127.0.0.1:0", func(line string) string {
			if line == "AUTH s3cret" && !strings.HasPrefix(reply(line), "-NOAUTH") && reply(line) != "hang" {
				return "OK\n"
			}
			return reply(line)
		}), seen: []clusterview.Seen{{Worker: 3, Name: "ids-3", Host: host}}}
	}
	http1 := func(h http.HandlerFunc) target {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return target{addr: s.Listener.Addr().String(), admin: true}
	}
	ofCluster := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(admin.Status{Cluster: node.ClusterSnapshot{Name: name}, Workers: []node.Snapshot{snapshot(1, nil), snapshot(0, nil)}})
		}
	}
	hang := line(says("hang"))
	rows := []struct {
		name   string
		target target
		asked  string
		says   string
		why    string
	}{
		{"by its line", line(answering()), clusterview.Answered, "ready", ""},
		{"by HTTP", http1(ofCluster("default")), clusterview.Answered, "ready", ""},
		{"of another cluster, by its line", line(answering("cluster other")), clusterview.AnotherCluster, "another cluster", "a node of cluster other answers"},
		{"of another cluster, by HTTP", http1(ofCluster("other")), clusterview.AnotherCluster, "another cluster", "a node of cluster other answers"},
		{"something else, by HTTP", http1(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }), clusterview.AnotherNode, "another node", "its answer has no worker"},
		{"something else", line(says("-ERR unknown command 'STATS'\n")), clusterview.AnotherNode, "another node", "answered -ERR unknown command 'STATS'"},
		{"something with an END", line(says("hello\nEND\n")), clusterview.AnotherNode, "another node", "its reply to STATS has no state"},
		{"speaks TLS", line(says("-ERR this port requires TLS. Connect with TLS\n")), clusterview.AccessDenied, "access denied", "-ERR this port requires TLS. Connect with TLS"},
		{"asks for another token", line(says("-WRONGPASS wrong token\n")), clusterview.AccessDenied, "access denied", "-WRONGPASS wrong token"},
		{"nobody", target{addr: nobody}, clusterview.NoAnswer, "no answer", "connection refused"},
		{"hangs", hang, clusterview.TimedOut, "timed out", "timed out after 2s"},
		{"nowhere", target{seen: []clusterview.Seen{{Worker: 1}}}, clusterview.NoAddress, "no address", ""},
	}
	var targets []target
	for _, row := range rows {
		targets = append(targets, row.target)
	}
	began := time.Now()
	reports := a.askTargets(t.Context(), "default", targets)
	if took := time.Since(began); took > nodesTime+time.Second {
		t.Errorf("it took %v", took)
	}
	for i, row := range rows {
		r := reports[i]
		if r.Asked != row.asked || r.SaysText() != row.says || !strings.Contains(r.Why, row.why) || row.why == "" && r.Why != "" || (r.Says != nil) != (row.asked == clusterview.Answered) {
			t.Errorf("%s: %q, %q, %q", row.name, r.Asked, r.SaysText(), r.Why)
		}
		if answered := r.Says != nil; answered && len(r.Seen) > 0 || !answered && len(r.Seen) != len(row.target.seen) {
			t.Errorf("%s: seen %+v", row.name, r.Seen)
		}
	}
	if r := reports[1]; joinNumbers(r.Workers) != "0,1" || r.WorkersReady != 2 {
		t.Errorf("%+v", r)
	}
	// If no cluster was named, an answer of any cluster counts.
	if r := a.askTargets(t.Context(), "", targets[2:3])[0]; r.Asked != clusterview.Answered {
		t.Errorf("%+v", r)
	}
	// Unusable TLS flags fail only the targets that need them.
	a.access.err = errors.New("--tls-ca: no")
	secure := target{addr: "https://127.0.0.1:1", admin: true}
	if r := a.askTargets(t.Context(), "", append(targets[:2:2], secure)); r[0].Why != "--tls-ca: no" || r[1].Asked != clusterview.Answered || r[2].Asked != clusterview.TLSFailed || r[2].Why != "--tls-ca: no" {
		t.Errorf("%+v", r)
	}
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

// cannotRead is the report for a ZooKeeper that cannot be reached.
var cannotRead = clusterview.Unread{Connect: "zk1:2181", Error: "ZooKeeper cannot be reached: refused"}

func silentNode(state string) clusterview.NodeReport {
	return newNodeReport(target{addr: "b:1", seen: []clusterview.Seen{{Worker: 3, Name: "ids-3", State: state}}}, clusterview.NoAnswer, "connection refused", admin.Status{}, time.UnixMilli(t0))
}

func TestNodesProblems(t *testing.T) {
	cutOff := func(values ...string) clusterview.NodeReport {
		return parsed(append([]string{"zookeeper_ok false", "degraded zookeeper"}, values...)...)
	}
	for _, row := range []struct {
		name  string
		zk    clusterview.Unread
		nodes []clusterview.NodeReport
		code  int
		want  string
	}{
		{"all is well", clusterview.Unread{}, []clusterview.NodeReport{parsed()}, exitOK, ""},
		{"one is silent", clusterview.Unread{}, []clusterview.NodeReport{parsed(), silentNode(clusterview.Live)}, exitDegraded, "critical: node ids-3 at b:1 did not answer (connection refused). Check the process"},
		{"a stopped one is silent", clusterview.Unread{}, []clusterview.NodeReport{parsed(), silentNode(clusterview.Stopped)}, exitOK, ""},
		{"all are silent", clusterview.Unread{}, []clusterview.NodeReport{silentNode(clusterview.Live)}, exitUnreachable, "no node answered: 1 problem\ncritical: node ids-3 at b:1 did not answer"},
		{"not ready", clusterview.Unread{}, []clusterview.NodeReport{parsed("ready false", "cause clock-wrong")}, exitDegraded, "node ids-1 at a:1 is not ready (clock-wrong). Check with chronyc tracking, then set the clock right"},
		{"two not ready", clusterview.Unread{}, []clusterview.NodeReport{parsed("ready false", "cause x"), parsed("ready false", "cause x")}, exitDegraded, "2 nodes (ids-1 at a:1, ids-1 at a:1) are not ready (x). See docs/troubleshooting.md."},
		{"a part of it", clusterview.Unread{}, []clusterview.NodeReport{parsed("workers 1,2", "workers_ready 1")}, exitDegraded, "only some of the workers make IDs"},
		{"cut off", clusterview.Unread{}, []clusterview.NodeReport{cutOff()}, exitDegraded, "critical: node ids-1 at a:1 has no contact with ZooKeeper. Restore its connection to ZooKeeper"},
		{"no ZooKeeper", cannotRead, []clusterview.NodeReport{cutOff()}, exitDegraded, "degraded: 1 problem\ncritical: ZooKeeper cannot be reached. Start it again"},
		{"no ZooKeeper from here", cannotRead, []clusterview.NodeReport{parsed(), cutOff()}, exitDegraded, "warning: ZooKeeper cannot be reached from here, but node ids-1 at a:1 can reach it. Check --zk"},
		{"no ZooKeeper, nobody", cannotRead, []clusterview.NodeReport{silentNode(clusterview.Live)}, exitUnreachable, "no node answered: 2 problems, the worst first\ncritical: ZooKeeper cannot be reached. Start it again.\ncritical: node ids-3"},
		{"no ZooKeeper, all stopped", cannotRead, []clusterview.NodeReport{silentNode(clusterview.Stopped)}, exitUnreachable, "no node answered: 1 problem\ncritical: ZooKeeper cannot be reached"},
	} {
		r := nodesPage{clusterview.AssessNodes(row.zk, clusterview.Addresses{From: clusterview.FromFlag}, row.nodes, time.UnixMilli(t0))}
		code, text := explain(t.Context(), r.verdict())
		if code != row.code || row.want == "" && text != "" || !strings.Contains(text, row.want) {
			t.Errorf("%s: %d, %q", row.name, code, text)
		}
		if r.Summary.Degraded != (code != exitOK) || r.Summary.Degraded != (len(r.Summary.Problems) > 0) {
			t.Errorf("%s: %+v", row.name, r.Summary)
		}
	}
}

// Every trouble that a node may report is a problem.
func TestEveryTroubleOfANodeIsAProblem(t *testing.T) {
	for _, word := range node.Troubles() {
		r := clusterview.AssessNodes(clusterview.Unread{}, clusterview.Addresses{}, []clusterview.NodeReport{parsed("degraded " + word)}, time.UnixMilli(t0))
		if len(r.Summary.Problems) != 1 || !strings.HasPrefix(r.Summary.Problems[0].Text, "node ids-1 at a:1 ") {
			t.Errorf("%s: %q", word, r.Summary.Problems)
		}
	}
}

// Ages and leases are as of the time at which they are shown.
func TestAgesAndLeasesAdvanceUntilShown(t *testing.T) {
	r := clusterview.AssessNodes(clusterview.Unread{}, clusterview.Addresses{}, []clusterview.NodeReport{parsed()}, time.UnixMilli(t0+1500))
	n := r.Nodes[0]
	if *n.HeartbeatAgeMs != 1900 || *n.Says.LeaseLeftMs != 58_500 || *n.Says.ReservedLeftMs != 1000 || *r.Summary.ShortestLeaseMs != 58_500 {
		t.Errorf("%d, %d, %d", *n.HeartbeatAgeMs, *n.Says.LeaseLeftMs, *n.Says.ReservedLeftMs)
	}
	last := lastSeen{SavedMs: t0 - 310_000}
	if a := cachedAddresses(last, time.UnixMilli(t0)); a.From != clusterview.FromCache || *a.AgeMs != 310_000 || *a.SavedMs != last.SavedMs {
		t.Errorf("%+v", a)
	}
	if a := cachedAddresses(last, time.UnixMilli(last.SavedMs-1)); a.AgeMs != nil || *a.SavedMs != last.SavedMs {
		t.Errorf("%+v", a)
	}
}

func exampleNodes() nodesPage {
	silent := silentNode(clusterview.Live)
	silent.Seen = append(silent.Seen, clusterview.Seen{Worker: 4})
	nodes := []clusterview.NodeReport{
		parsed("zookeeper_ok false", "degraded zookeeper", "heartbeat_age_ms 310400"),
		silent,
		parsed("name ids-5", "worker 5", "ready false", "reason -CLOCK x", "cause clock-behind", "zookeeper_ok false", "degraded zookeeper"),
		newNodeReport(target{seen: []clusterview.Seen{{Worker: 6, Name: "ids-\x1b6"}}}, clusterview.NoAddress, "", admin.Status{}, time.UnixMilli(t0)),
	}
	return nodesPage{clusterview.AssessNodes(cannotRead, cachedAddresses(lastSeen{SavedMs: t0 - 310_000, Left: 2}, time.UnixMilli(t0)), nodes, time.UnixMilli(t0))}
}

func TestNodesTable(t *testing.T) {
	var b bytes.Buffer
	if err := exampleNodes().print(&b, style{}); err != nil {
		t.Fatal(err)
	}
	want := `WORKER  NAME      ADDRESS  SAYS                     HEARTBEAT  LEASE  VERSION
7       ids-1     a:1      ready, but no ZooKeeper  5m10s ago  1m0s   1.2.3
(3,4)   (ids-3)   b:1      no answer                -          -      -
5       ids-5     a:1      not ready: clock-behind  400ms ago  1m0s   1.2.3
(6)     (ids-` + "\ufffd" + `6)  -        no address               -          -      -

ZooKeeper was not read, so the values come from the nodes: ZooKeeper cannot be reached: refused
the addresses, and the values in parentheses, are as ZooKeeper had them at 2026-11-20T17:41:39.000Z (5m10s ago)
2 more nodes were not cached, and are not asked
2 of 4 nodes answered, 1 of them ready, at 2026-11-20T17:46:49.000Z
without ZooKeeper, every ready node lasts at least 1m0s (first: node ids-1 at a:1)
`
	if b.String() != want {
		t.Errorf("\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := exampleNodes().print(&b, style{wide: true, colour: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"VERSION  PHASE    CLOCK ", "\x1b[32mready, but no ZooKeeper\x1b[0m", "\x1b[31mno answer\x1b[0m", " connection refused\n", "-3ms +/- 2ms slow  42   n1"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	back := exampleNodes()
	back.Addresses = cachedAddresses(lastSeen{SavedMs: t0 + 5000}, time.UnixMilli(t0))
	if text := strings.Join(back.footer(), "\n"); !strings.Contains(text, "(in 5.0s), which is in the future: this machine's clock went back") {
		t.Errorf("%s", text)
	}
}

// remembering writes a cache for status: the addresses of cluster default, which were read long
// ago from a ZooKeeper that cannot be reached.
func remembering(t *testing.T, age time.Duration, addrs ...string) {
	t.Helper()
	host, _ := os.Hostname()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	last := lastSeen{Connect: nobody, Cluster: "default", SavedMs: time.Now().Add(-age).UnixMilli()}
	for i, addr := range addrs {
		last.Nodes = append(last.Nodes, clusterview.Seen{Worker: i, Name: fmt.Sprintf("ids-%d", i), State: clusterview.Live, Host: host, Address: addr})
	}
	newSeenCache().save(last)
}

func TestStatusWithoutZooKeeper(t *testing.T) {
	down := []string{"status", "--zk", nobody, "--zk-session-timeout", "500ms"}
	status := func(args ...string) result { return call(t, "", append(slices.Clone(down), args...)...) }
	status().wants(t, exitUnreachable, "", "No addresses of nodes are cached. `flaked status --addr HOST:PORT` asks nodes without ZooKeeper. Check --zk")

	// status subtracts the time since the answer. Half a minute above the hour keeps it 1h0m on
	// a slow machine.
	one := fakeNode(t, "tcp", "127.0.0.1:0", answering("zookeeper_ok false", "degraded zookeeper", "lease_left_ms 3630000"))
	remembering(t, 5*time.Hour, one, nobody)
	r := status()
	r.wants(t, exitDegraded, "ZooKeeper was not read, so the values come from the nodes: ZooKeeper cannot be reached: ", "flaked: degraded: 2 problems, the worst first\ncritical: ZooKeeper cannot be reached. Start it again within 1h0m: then the next lease expires.\ncritical: node ids-1 at "+nobody+" did not answer (connection refused)")
	for _, want := range []string{"7       ids-1    " + one + "  ready, but no ZooKeeper", "(1)     (ids-1)  " + nobody, " (5h0m ago)\n", "1 of 2 nodes answered, 1 of them ready, at 2"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	var doc clusterview.NodesReport
	r = status("-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || r.code != exitDegraded || doc.Source != clusterview.SourceNodes || doc.Addresses.From != clusterview.FromCache ||
		*doc.Addresses.AgeMs < 18_000_000 || *doc.Addresses.AgeMs > 18_060_000 || doc.ZooKeeper.Connect != nobody || doc.Summary.Answered != 1 || doc.Nodes[1].Seen[0].Worker != 1 {
		t.Errorf("%d, %v, %+v", r.code, err, doc)
	}

	// status asks no node about another cluster, and none with --no-ask.
	status("--cluster", "other").wants(t, exitUnreachable, "", "No addresses of nodes are cached")
	status("--no-ask").wants(t, exitUnreachable, "", "Check --zk (FLAKED_ZK)")

	remembering(t, time.Minute, nobody)
	status().wants(t, exitUnreachable, "0 of 1 nodes answered", "flaked: no node answered: 2 problems, the worst first\ncritical: ZooKeeper cannot be reached. Start it again")
}

func TestStatusOfAddresses(t *testing.T) {
	one, two := fakeNode(t, "tcp", "127.0.0.1:0", answering()), fakeNode(t, "tcp", "127.0.0.1:0", answering("cluster other", "name ids-2"))
	t.Setenv("FLAKED_ZK", nobody) // ignored
	t.Setenv("FLAKED_CLUSTER", "prod")
	r := call(t, "", "status", "--addr", one, "--addr", two, "--addr", one)
	r.wants(t, exitOK, "2 of 2 nodes answered, 2 of them ready, at ", "")
	if strings.Contains(r.stdout, "ZooKeeper was not read") || strings.Contains(r.stdout, "parentheses") {
		t.Errorf("%s", r.stdout)
	}
	call(t, "", "status", "--addr", one+","+two).wants(t, exitOK, "2 of 2 nodes answered", "")
	call(t, "", "status", "--addr", one, "--addr", two, "--cluster", "other").wants(t, exitDegraded, "another cluster", "node "+one+" did not answer (a node of cluster default answers)")
	call(t, "", "status", "--addr", one, "--addr", nobody).wants(t, exitDegraded, "1 of 2 nodes answered", "critical: node "+nobody+" did not answer (connection refused)")
	call(t, "", "status", "--addr", nobody, "-o", "json").wants(t, exitUnreachable, `"answered": 0,`, "flaked: no node answered: 1 problem\ncritical: node "+nobody)
	for args, want := range map[string]string{
		"--addr :x":                         `--addr: ":x": "x" is not a port`,
		"--addr " + one + " --no-ask":       "--addr asks nodes, and --no-ask asks none",
		"--addr " + one + " --zk zk1:2181":  "--addr asks nodes and does not read ZooKeeper. Leave out --zk or --addr",
		"--addr " + one + " --tls-ca /none": "--tls-ca: file /none not found",
	} {
		call(t, "", append([]string{"status"}, strings.Fields(args)...)...).wants(t, exitUsage, "", want)
	}
	// status ignores an address that is set for the other commands.
	t.Setenv("FLAKED_ADDR", one)
	file := configFile(t, "addr: "+one+"\n")
	call(t, "", "status", "--config", file, "--zk-session-timeout", "500ms").wants(t, exitUnreachable, "", "ZooKeeper cannot be reached")
}

func TestStatusWatchWithoutZooKeeper(t *testing.T) {
	remembering(t, time.Hour, fakeNode(t, "tcp", "127.0.0.1:0", answering()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"flaked", "status", "--zk", nobody, "--zk-session-timeout", "500ms", "--watch", "100ms"}, strings.NewReader(""), in, &stderr)
		in.Close()
	}()
	const last = "warning: ZooKeeper cannot be reached from here, but node ids-1"
	text, err := discardUntil(out, last, 3)
	cancel()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if c := <-code; c != exitOK || err != nil || stderr.String() != "" || strings.Count(text, " (1h0m ago)\n") != 3 {
		t.Errorf("exit code %d, %v, %s\n%s", c, err, stderr.String(), text)
	}
}
