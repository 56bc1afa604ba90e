package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/clusterview"
	"github.com/flaked/flaked/node"
)

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

// parsed returns the report of a node with these values in STATS.
func parsed(values ...string) clusterview.WorkerReport {
	stats := map[string]string{}
	for line := range strings.Lines(statsLines(values...)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		stats[name] = value
	}
	w := clusterview.WorkerReport{Worker: -1, Address: "a:1"}
	describeStats(&w, stats)
	return w
}

func TestStatsAreParsedIntoAnAnswer(t *testing.T) {
	r := parsed()
	want := clusterview.Answer{Ready: true, Phase: "serving", Degraded: []string{}, LeaseLeftMs: new(int64(60000)), ReservedLeftMs: new(int64(2500)), ZooKeeperOK: true, IDs: 42}
	if !reflect.DeepEqual(*r.Says, want) || r.Name != "ids-1" || r.Node != "n1" || r.Version != "1.2.3" || r.Worker != 7 || r.Term != 2 || r.State != clusterview.Live ||
		*r.ReportAgeMs != 400 || *r.ClockOffsetMs != -3 || *r.ClockUncertaintyMs != 2 {
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
		{"a terminal's codes", []string{"ready false", "cause \x1b[2J"}, "not ready: \ufffd[2J"},
	} {
		if got := parsed(row.values...).SaysText(); got != row.says {
			t.Errorf("%s: %q, not %q", row.name, got, row.says)
		}
	}
}

func TestAskStatus(t *testing.T) {
	a := newAsker(lineAccess{})
	a.token = "s3cret"
	for _, row := range []struct{ name, reply, asked, why string }{
		{"a node", statsLines(), clusterview.Answered, ""},
		{"something else", "-ERR unknown command 'STATS'\n", clusterview.AnotherNode, "answered -ERR unknown command 'STATS'"},
		{"something with an END", "hello\nEND\n", clusterview.AnotherNode, "its reply to STATS has no state"},
		{"speaks TLS", "-ERR this port requires TLS. Connect with TLS\n", clusterview.AccessDenied, "-ERR this port requires TLS. Connect with TLS"},
		{"asks for another token", "-WRONGPASS wrong token\n", clusterview.AccessDenied, "-WRONGPASS wrong token"},
	} {
		addr := fakeNode(t, "tcp", "127.0.0.1:0", func(line string) string {
			if line == "AUTH s3cret" && row.asked != clusterview.AccessDenied {
				return "OK\n"
			}
			return row.reply
		})
		if w, _ := a.askStatus(t.Context(), target{addr: addr}); w.Asked != row.asked || !strings.Contains(w.Why, row.why) || (w.Says != nil) != (row.asked == clusterview.Answered) {
			t.Errorf("%s: %q, %q", row.name, w.Asked, w.Why)
		}
	}
	if w, _ := a.askStatus(t.Context(), target{addr: nobody}); w.Asked != clusterview.NoAnswer || w.Why != "connection refused" {
		t.Errorf("%+v", w)
	}
}

func TestProblemsOfAskedNodes(t *testing.T) {
	cutOff := func(values ...string) clusterview.WorkerReport {
		return parsed(append([]string{"zookeeper_ok false", "degraded zookeeper"}, values...)...)
	}
	silent := clusterview.WorkerReport{Worker: -1, Address: "b:1", Asked: clusterview.NoAnswer, Why: "connection refused"}
	const refused = "ZooKeeper cannot be reached: refused"
	for _, row := range []struct {
		name  string
		zk    string
		nodes []clusterview.WorkerReport
		want  string
	}{
		{"all is well", "", []clusterview.WorkerReport{parsed()}, ""},
		{"one is silent", "", []clusterview.WorkerReport{parsed(), silent}, "critical: node at b:1 did not answer (connection refused). Check the process"},
		{"not ready", "", []clusterview.WorkerReport{parsed("ready false", "cause clock-wrong")}, "critical: worker 7 (ids-1) refuses to serve (clock-wrong): The machine's clock is wrong. Check with chronyc tracking, then set the clock right"},
		{"starting", "", []clusterview.WorkerReport{parsed("state starting", "worker", "ready false", "cause no-worker-yet")}, "critical: node ids-1 refuses to serve (no-worker-yet): Starting"},
		{"cut off", "", []clusterview.WorkerReport{cutOff()}, "critical: worker 7 (ids-1) is disconnected, but its node answers: it is disconnected from ZooKeeper. Restore the connection to ZooKeeper before the lease expires."},
		{"no ZooKeeper", refused, []clusterview.WorkerReport{cutOff()}, "critical: ZooKeeper cannot be reached. Start it again within 1m0s: then the next lease expires."},
		{"no ZooKeeper from here", refused, []clusterview.WorkerReport{parsed()}, "warning: ZooKeeper cannot be reached from here, but a node can reach it. Check --zk"},
	} {
		r := clusterview.AssessNodes(row.zk, row.nodes, time.UnixMilli(t0))
		code, text := explain(t.Context(), degraded(r.Summary.Problems))
		if (code == exitOK) != (row.want == "") || !strings.Contains(text, row.want) {
			t.Errorf("%s: %d, %q", row.name, code, text)
		}
	}
	for _, word := range node.Troubles() {
		values := []string{"degraded " + word}
		if word == node.TroubleZooKeeper {
			values = append(values, "zookeeper_ok false")
		}
		if r := clusterview.AssessNodes("", []clusterview.WorkerReport{parsed(values...)}, time.UnixMilli(t0)); len(r.Summary.Problems) != 1 {
			t.Errorf("%s: %q", word, r.Summary.Problems)
		}
	}
}

func TestStatusOfAddresses(t *testing.T) {
	well, cutOff := fakeNode(t, "tcp", "127.0.0.1:0", answering()), fakeNode(t, "tcp", "127.0.0.1:0", answering("zookeeper_ok false"))
	call(t, "", "status", "--addr", well).wants(t, exitOK, "live   ready  400ms   -3ms +/- 2ms slow  1m0s", "")
	call(t, "", "status", "--addr", well, "--addr", cutOff).wants(t, exitDegraded, "nodes asked: 2 answered", "is disconnected, but its node answers")
	call(t, "", "status", "--addr", nobody).wants(t, exitUnreachable, "nodes asked: 1 did not answer", "no node answered: 1 problem\ncritical: node at "+nobody+" did not answer (connection refused)")
	call(t, "", "status", "--addr", well, "--no-ask").wants(t, exitUsage, "", "--no-ask asks none")
	call(t, "", "status", "--zk", "127.0.0.1:1").wants(t, exitUnreachable, "", "`flaked status --addr HOST:PORT` asks nodes without ZooKeeper")
}
