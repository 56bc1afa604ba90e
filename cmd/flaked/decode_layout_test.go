package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestLayoutSources(t *testing.T) {
	const none, settings, line = notGiven, inSettings, onCommandLine
	for _, row := range []struct {
		name    string
		hints   layoutHints
		order   []layoutSource
		binding bool
		err     string
	}{
		{"nothing is said", layoutHints{none, none, none, none}, []layoutSource{fromNode}, false, ""},
		{"a cluster in the settings", layoutHints{none, none, none, settings}, []layoutSource{fromNode}, false, ""},
		{"a node in the settings", layoutHints{none, settings, none, none}, []layoutSource{fromNode}, false, ""},
		{"ZooKeeper in the settings", layoutHints{none, none, settings, settings}, []layoutSource{fromNode, fromZooKeeper}, false, ""},
		{"both in the settings", layoutHints{none, settings, settings, none}, []layoutSource{fromNode, fromZooKeeper}, false, ""},
		{"a layout in the settings", layoutHints{settings, settings, settings, none}, []layoutSource{fromFlag}, true, ""},
		{"--layout", layoutHints{line, settings, settings, settings}, []layoutSource{fromFlag}, true, ""},
		{"--addr", layoutHints{settings, line, settings, settings}, []layoutSource{fromNode}, true, ""},
		{"--zk", layoutHints{settings, settings, line, none}, []layoutSource{fromZooKeeper}, true, ""},
		{"--zk and --cluster", layoutHints{none, none, line, line}, []layoutSource{fromZooKeeper}, true, ""},
		{"--cluster", layoutHints{none, none, settings, line}, []layoutSource{fromZooKeeper}, true, ""},
		{"--cluster of nowhere", layoutHints{settings, none, none, line}, nil, false, "--cluster needs --zk"},
		{"--layout and --addr", layoutHints{line, line, none, none}, nil, false, "Give one of them"},
		{"--layout and --cluster", layoutHints{line, none, settings, line}, nil, false, "Give one of them"},
		{"--addr and --zk", layoutHints{none, line, line, none}, nil, false, "Give one of them"},
	} {
		order, binding, err := row.hints.sources()
		if fmt.Sprint(order) != fmt.Sprint(row.order) || binding != row.binding || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v, binding %v, %v", row.name, order, binding, err)
		}
	}
}

func TestDoubtOf(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name string
		made time.Time
		want doubt
	}{
		{"now", now, ""},
		{"long ago", time.Date(2019, 12, 31, 23, 59, 59, 999e6, time.UTC), beforeFlaked},
		{"the first moment", time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), ""},
		{"as far ahead as a node may be", now.Add(mostAhead), ""},
		{"further ahead", now.Add(mostAhead + time.Millisecond), inTheFuture},
		{"before the epoch of Unix", time.UnixMilli(-1), beforeFlaked},
	} {
		if got := doubtOf(row.made, now); got != row.want {
			t.Errorf("%s: %q, not %q", row.name, got, row.want)
		}
	}
}

const sonyflakes = "time=39@10ms,sequence=8,datacenter=0,worker=16,epoch=1409529600000,order=written"

// aSonyflake was made by worker 7 on 2026-11-20. Decoded by leaf, it is from 2015.
const aSonyflake = "646934817669971975"

// statsOf returns a function that answers STATS as a node with this layout.
func statsOf(layout string) func(string) string {
	return func(line string) string {
		if line != "STATS" {
			return "-ERR unknown command\n"
		}
		return "version 1.2.3\ncluster orders\nlayout " + layout + "\nEND\n"
	}
}

// nobody is an address that refuses connections.
const nobody = "127.0.0.1:1"

func TestDecodeByTheLayoutOfANode(t *testing.T) {
	addr := fakeNode(t, "tcp", "127.0.0.1:0", statsOf(sonyflakes))
	from := fmt.Sprintf(`"worker":7,"sequence":13,"layout":%q,"layout_from":"node %s, cluster orders"}`, sonyflakes, addr) + "\n"
	call(t, "", "decode", "-o", "json", "--addr", addr, aSonyflake).wants(t, exitOK, from, "")
	call(t, "", "decode", "--addr", addr, aSonyflake).wants(t, exitOK, "layout sonyflake: "+sonyflakes+", from node "+addr+", cluster orders\nID ", "")
	call(t, "", "layout", "explain", "--addr", addr, aSonyflake).wants(t, exitOK, "ID "+aSonyflake+", layout sonyflake: "+sonyflakes+", from node "+addr, "")
	call(t, "", "layout", "show", "--addr", addr).wants(t, exitOK, "layout from       node "+addr+", cluster orders\n", "")

	// decode asks the same node as `flaked get`, whatever FLAKED_ZK says.
	t.Setenv("FLAKED_ADDR", addr)
	t.Setenv("FLAKED_ZK", nobody)
	call(t, "", "decode", "-o", "json", aSonyflake).wants(t, exitOK, from, "")
	// The command line goes before all settings.
	call(t, "", "decode", "-o", "json", "--layout", "leaf", "2123840256405929993").wants(t, exitOK, `"layout_from":"--layout"`, "")
	t.Setenv("FLAKED_LAYOUT", recent)
	call(t, "", "decode", "-o", "json", "5").wants(t, exitOK, `"layout_from":"FLAKED_LAYOUT"}`, "")
	other := fakeNode(t, "tcp", "127.0.0.1:0", statsOf(recent))
	call(t, "", "decode", "-o", "json", "--addr", other, "5").wants(t, exitOK, `"layout_from":"node `+other, "")
	file := configFile(t, "layout: "+recent+"\naddr: "+nobody+"\n")
	t.Setenv("FLAKED_LAYOUT", "")
	call(t, "", "decode", "-o", "json", "--config", file, "5").wants(t, exitOK, `"layout_from":"settings file"}`, "")
	call(t, "", "decode", "-o", "json", "--config", file, "--addr", other, "5").wants(t, exitOK, `"layout_from":"node `+other, "")
}

func TestDecodeReportsANodeWithoutLayout(t *testing.T) {
	for _, row := range []struct {
		name   string
		reply  func(string) string
		code   int
		reason string
	}{
		{"no layout yet", says("cluster orders\nEND\n"), exitFailure, "does not know its cluster's layout yet: it has not reached ZooKeeper"},
		{"no token", says("-NOAUTH not authenticated. Send AUTH [user] token\n"), exitFailure, "answered -NOAUTH not authenticated. Send AUTH [user] token"},
		{"another server", says("-ERR unknown command 'STATS'\n"), exitFailure, "answered -ERR unknown command 'STATS'"},
		{"a layout of a later release", says("cluster x\nlayout quantum\nEND\n"), exitFailure, `answered "quantum" for its layout`},
		{"no end", says(strings.Repeat("a 1\n", mostStats)), exitFailure, `answered "a 1" to STATS. Check that it is a flaked node`},
		{"hangs", says("hang"), exitUnreachable, "timed out after 200ms"},
	} {
		t.Run(row.name, func(t *testing.T) {
			addr := fakeNode(t, "tcp", "127.0.0.1:0", row.reply)
			call(t, "", "decode", "--addr", addr, "--timeout", "200ms", "5").wants(t, row.code, "", row.reason)
			// If nobody asked for that node in particular, the layout is assumed.
			t.Setenv("FLAKED_ADDR", addr)
			r := call(t, "", "decode", "--timeout", "200ms", "2123840256405929993")
			r.wants(t, exitDegraded, "epoch=1288834974657, assumed\nID ", "flaked: the default layout is assumed: ")
			if !strings.Contains(r.stderr, row.reason) || !strings.HasSuffix(r.stderr, ". Give --layout, --addr or --zk.\n") {
				t.Errorf("it does not say %q: %s", row.reason, r.stderr)
			}
		})
	}
}

// Users trust the decoded times, so decode must warn when it assumes a layout.
func TestDecodeWarnsOfAnAssumedLayout(t *testing.T) {
	t.Setenv("FLAKED_ADDR", nobody)
	r := call(t, "", "decode", "-o", "json", aSonyflake)
	r.wants(t, exitDegraded, `"time":"2015-`, "the default layout is assumed: no answer from a node at "+nobody+": connection refused. Give --layout, --addr or --zk. The time, 2015-")
	r.wants(t, exitDegraded, `"worker":208,"sequence":7,"layout":"time=41@1ms,datacenter=0,worker=10,sequence=12,epoch=1288834974657","layout_from":"assumed","warning":"before 2020"}`, "is before 2020. Most likely another layout made the ID")
	call(t, "", "layout", "explain", aSonyflake).wants(t, exitDegraded, ", before 2020\n", "the default layout is assumed")
	call(t, "", "layout", "show").wants(t, exitDegraded, "layout from       assumed\n", "the default layout is assumed")
	call(t, "\n", "decode").wants(t, exitOK, "", "") // nothing was decoded
	t.Setenv("FLAKED_ZK", nobody)
	call(t, "", "decode", "--timeout", "300ms", "2123840256405929993").wants(t, exitDegraded, ", assumed\n", "connection refused; ZooKeeper cannot be reached: ")
}
