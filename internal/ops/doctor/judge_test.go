package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
)

// at returns the first finding of a check.
func at(t *testing.T, found []Finding, check string) Finding {
	t.Helper()
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == check })
	if i < 0 {
		t.Fatalf("there is no %s in %+v", check, found)
	}
	return found[i]
}

// wants checks a finding's level and a part of its text and advice. Only warnings and
// failures must have advice.
func (f Finding) wants(t *testing.T, name string, level Level, text string) {
	t.Helper()
	if f.Level != level || !strings.Contains(f.Text+". "+f.Advice, text) {
		t.Errorf("%s: %+v, want %s and %q", name, f, level, text)
	}
	if (f.Advice != "") != (level == Warn || level == Fail) {
		t.Errorf("%s: %s with the advice %q", name, level, f.Advice)
	}
}

type row struct {
	name  string
	found Finding
	level Level
	text  string
}

func checkRows(t *testing.T, rows []row) {
	t.Helper()
	for _, row := range rows {
		row.found.wants(t, row.name, row.level, row.text)
	}
}

func TestWorkers(t *testing.T) {
	held := coordinator.Entry{Slot: coordinator.Slot{Term: 1, LeaseUntil: 2000}}
	of := func(slots int, entries ...coordinator.Entry) Finding {
		return judgeWorkers(coordinator.Cluster{Slots: slots}, entries, 1000)
	}
	checkRows(t, []row{
		{"all free", of(4), OK, "4 of 4 workers are free"},
		{"one of each", of(100, held, coordinator.Entry{Slot: coordinator.Slot{Term: 1, LeaseUntil: 500}},
			coordinator.Entry{Missing: true}, coordinator.Entry{Live: true},
			coordinator.Entry{Slot: coordinator.Slot{Term: 1, LeaseUntil: 20_000, Released: true}}),
			OK, "96 of 100 workers are free: 2 held, 1 releasing, 1 record-missing"},
		{"few", of(21, slices.Repeat([]coordinator.Entry{held}, 20)...), Warn, "1 of 21"},
		{"none", of(2, held, held), Fail, "0 of 2 workers are free: 2 held"},
	})
}

func TestServers(t *testing.T) {
	up := server{addr: "a:1", took: time.Millisecond}
	down := server{addr: "b:1", err: errors.New("connection refused")}
	for _, tc := range []struct {
		name    string
		servers []server
		level   Level // of the last line
		text    string
	}{
		{"it serves", []server{up}, OK, "a:1 serves, and answers in 1ms"},
		{"one of two is down", []server{up, down}, Warn, "b:1: connection refused. Start it, or correct --zk"},
		{"all are down", []server{down, down}, Fail, "connection refused"},
		{"silent", []server{{addr: "c:1", err: context.DeadlineExceeded}}, Fail, "no answer in time"},
		{"no quorum", []server{up, {addr: "c:1", err: noSession{errSlow}}}, Warn, "whether a majority of the servers"},
		{"too many connections", []server{up, {addr: "c:1", err: noSession{errSlow}, full: true}}, Warn, "maxClientCnxns"},
		{"slow", []server{{addr: "c:1", took: time.Second}}, Warn, "c:1 serves, and answers in 1s"},
	} {
		found := judgeServers(tc.servers)
		f := found[len(found)-1]
		f.wants(t, tc.name, tc.level, tc.text)
		if f.unreachable != (tc.level == Fail) {
			t.Errorf("%s: unreachable is %v", tc.name, f.unreachable)
		}
	}
}

func TestProbes(t *testing.T) {
	fine := store.Probe{Chroot: true, Root: true, Modern: true, At: "/flaked/x", Write: time.Millisecond,
		Read: time.Millisecond}
	with := func(change func(*store.Probe)) store.Probe {
		p := fine
		change(&p)
		return p
	}
	denied, cut := fmt.Errorf("%w: set", store.ErrDenied), fmt.Errorf("%w: set", store.ErrUnreachable)
	for _, tc := range []struct {
		name   string
		probe  store.Probe
		err    error
		check  string
		level  Level
		text   string
		usable bool
	}{
		{"all is well", fine, nil, "session", OK, "", true},
		{"all is well", fine, nil, "access", OK, "created, changed and deleted in /flaked/x", true},
		{"all is well", fine, nil, "latency", OK, "a write takes 1ms, a read 1ms", true},
		{"of an ensemble", with(func(p *store.Probe) { p.Members = []string{"", "", ""} }), nil, "session", Warn,
			"Name all of them in --zk", true},
		{"an old one", with(func(p *store.Probe) { p.Modern = false }), nil, "session", Warn,
			"older than ZooKeeper 3.5", true},
		{"anybody's", with(func(p *store.Probe) { p.Open = true }), nil, "access", OK,
			"Anyone who reaches ZooKeeper", true},
		{"no chroot", with(func(p *store.Probe) { p.Chroot, p.Root, p.At = false, false, "/" }), nil, "access", OK,
			"The chroot does not exist yet", true},
		{"slow", with(func(p *store.Probe) { p.Write = time.Second }), nil, "latency", Warn,
			"disks of the ZooKeeper servers", true},
		{"a quota", with(func(*store.Probe) {}), store.ErrQuota, "access", Fail, "setquota -N", false},
		{"local sessions", with(func(*store.Probe) {}), store.ErrLocalSession, "access", Fail,
			"localSessionsUpgradingEnabled", false},
		{"no session", store.Probe{}, cut, "session", Fail, "no session within 3s. Check --zk", false},
		{"wrong password", store.Probe{}, denied, "session", Fail, "--zk-auth-file", false},
		{"another's records", fine, denied, "access", Fail, "may not create records in /flaked/x. Give " +
			"--zk-auth-file with the user", true},
		{"another's parent", with(func(p *store.Probe) { p.Root, p.At = false, "/flaked" }), denied, "access", Fail,
			"Let an administrator create /flaked/x for this user", false},
		{"lost underway", fine, cut, "access", Fail, "has a quorum", false},
	} {
		found, usable := judgeProbe("/flaked/x", Config{Timeout: 3 * time.Second,
			ZK: store.ZKConfig{Connect: "a:1"}}, tc.probe, tc.err)
		at(t, found, tc.check).wants(t, tc.name, tc.level, tc.text)
		if usable != tc.usable {
			t.Errorf("%s: usable is %v", tc.name, usable)
		}
	}
}

func TestCluster(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	cl := coordinator.Cluster{UUID: "u1",
		Layout: "time=41@1ms,datacenter=0,worker=10,sequence=12,epoch=1288834974657", Slots: 1024}
	with := func(change func(*coordinator.Cluster)) coordinator.Cluster {
		c := cl
		change(&c)
		return c
	}
	mine := func(uuid string) stateDir {
		rec := node.LocalRecord{Cluster: coordinator.Cluster{UUID: uuid}}
		return stateDir{path: "/s", record: rec, loaded: localcache.Loaded{Status: localcache.StatusRecord}}
	}
	no := func(coordinator.Cluster) error { return errors.New("--lease 1h differs from the cluster's 24h") }
	yes := func(coordinator.Cluster) error { return nil }
	of := func(check string, cl coordinator.Cluster, err error, cfg Config, dir stateDir) Finding {
		if cfg.Fits == nil {
			cfg.Fits = yes
		}
		return at(t, judgeCluster(cl, err, cfg, dir, now), check)
	}
	layout := func(text string) Finding {
		return of("layout", with(func(c *coordinator.Cluster) { c.Layout = text }), nil, Config{}, stateDir{})
	}
	other := of("cluster", cl, nil, Config{Fits: no}, stateDir{})
	other.Advice = "in the text"
	frozen := with(func(c *coordinator.Cluster) { c.FrozenUntil = now.UnixMilli() + 1 })
	checkRows(t, []row{
		{"as asked for", of("cluster", cl, nil, Config{}, stateDir{}), OK, "u1"},
		{"its own", of("cluster", cl, nil, Config{}, mine("u1")), OK, "u1"},
		{"another", of("cluster", cl, nil, Config{}, mine("u2")), Fail, "/s belongs to cluster u2, and this is"},
		{"none", of("cluster", cl, coordinator.ErrNoCluster, Config{}, stateDir{}), Fail, "flaked cluster init"},
		{"none yet", of("cluster", cl, coordinator.ErrNoCluster, Config{Bootstrap: true}, stateDir{}), OK,
			"the node creates it"},
		{"unreadable", of("cluster", cl, store.ErrDenied, Config{}, stateDir{}), Fail, "--zk-auth-file"},
		{"other settings", other, Fail, "--lease 1h differs from the"},
		{"frozen", judgeCluster(frozen, nil, Config{Fits: yes}, stateDir{}, now)[1], Warn, "Registration is frozen until"},
		{"long", layout(cl.Layout), OK, "2080-07-10"},
		{"soon", layout(strings.Replace(cl.Layout, "41@", "39@", 1)), Warn, "2028"},
		{"over", layout(strings.Replace(cl.Layout, "41@", "38@", 1)), Fail, "used up on 2019"},
		{"of the future", layout("qubits=7"), Fail, "Upgrade this one"},
	})
}

func TestOffsets(t *testing.T) {
	probe := func(ahead int64) store.Probe {
		return store.Probe{Sent: 100_000 + ahead, Acked: 100_002 + ahead, Stamp: 100_001, Zxid: 1<<32 + 7}
	}
	offset := func(d time.Duration) timeguard.Offset {
		return timeguard.Offset{Ahead: d, Uncertainty: time.Millisecond}
	}
	for _, tc := range []struct {
		name       string
		ahead      int64
		peers      []timeguard.Offset
		zk, others Level
		text, peer string
	}{
		{name: "right, alone", zk: OK, others: OK, text: "0s (give or take 2ms)", peer: "no other node"},
		{name: "right, among others", peers: []timeguard.Offset{offset(0), offset(0)}, zk: OK, others: OK,
			text: "ahead of that of ZooKeeper's leader", peer: "the farthest clock of 2 other nodes"},
		{name: "fast", ahead: 800, zk: Warn, others: OK, text: "800ms (give or take 2ms) ahead of",
			peer: "no clock to compare"},
		{name: "slow and alone", ahead: -9000, zk: Fail, others: OK, text: "9s (give or take 2ms) behind",
			peer: "no clock"},
		{name: "wrong by all", ahead: 9000, peers: []timeguard.Offset{offset(0), offset(0)}, zk: Fail, others: Fail,
			text: "Else set it right", peer: "Else set it right"},
		{name: "the leader is", ahead: 9000, peers: []timeguard.Offset{offset(9 * time.Second),
			offset(9 * time.Second)}, zk: Warn, others: OK, text: "Check the clock of ZooKeeper's leader",
			peer: "clock of 2 other nodes"},
		{name: "a peer is", peers: []timeguard.Offset{offset(0), offset(9 * time.Second), offset(0)}, zk: OK,
			others: Warn, text: "0s", peer: "9s (give or take 3ms) behind the farthest clock of 3 other nodes. " +
				"Compare the clocks"},
	} {
		found := judgeOffsets(probe(tc.ahead), tc.peers)
		at(t, found, "clock-zookeeper").wants(t, tc.name, tc.zk, tc.text)
		at(t, found, "clock-peers").wants(t, tc.name, tc.others, tc.peer)
	}

	live := func(node string) coordinator.Entry {
		return coordinator.Entry{Live: true, Slot: coordinator.Slot{Node: node, ReportedClock: 100_000, RTTMs: 2},
			Stat: store.Stat{Mtime: 100_000, Mzxid: 1<<32 + 3}}
	}
	own := stateDir{record: node.LocalRecord{Claim: coordinator.Claim{Owner: coordinator.Owner{Node: "ours"}}},
		loaded: localcache.Loaded{Status: localcache.StatusRecord}}
	if got := peers([]coordinator.Entry{live("n"), live("ours"), {}}, own, probe(0)); len(got) != 1 {
		t.Errorf("%d of the reports count, want 1: %v", len(got), got)
	}
}

func TestSummary(t *testing.T) {
	fail, cut, warn, ok := Finding{Level: Fail}, Finding{Level: Fail, unreachable: true}, Finding{Level: Warn},
		Finding{Level: OK}
	for _, tc := range []struct {
		name  string
		found []Finding
		want  Summary
	}{
		{"well", []Finding{ok, {Level: Skip}}, Summary{Level: OK, OK: 1, Skip: 1}},
		{"a warning", []Finding{ok, warn}, Summary{Level: Warn, OK: 1, Warn: 1}},
		{"a failure", []Finding{warn, fail}, Summary{Level: Fail, Warn: 1, Fail: 1}},
		{"unreachable", []Finding{cut, warn, cut}, Summary{Level: Fail, Warn: 1, Fail: 2, Unreachable: true}},
		{"and a failure", []Finding{cut, fail}, Summary{Level: Fail, Fail: 2}},
	} {
		if got := summarise(tc.found); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}
