package main

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/worker"
)

// someDay is the time at which these tests look at layouts.
var someDay = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func mustLayout(t testing.TB, text string) worker.Layout {
	t.Helper()
	l, err := worker.ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestUsableNow(t *testing.T) {
	for _, row := range []struct {
		layout, at, wrong string
	}{
		{"leaf", "2026-11-21", ""},
		{"leaf", "2080-07-10", ""},
		{"leaf", "2080-07-11", "used up on 2080-07-10. Give it another epoch, as in leaf,epoch=2080-07-11"},
		{"uid-generator", "2024-11-20", ""},
		{"uid-generator", "2024-11-21", "used up on 2024-11-20. Give it another epoch, as in uid-generator,epoch=2024-11-21"},
		{"worker=3,epoch=2030-01-01", "2029-12-31", "its epoch, 2030-01-01T00:00:00Z, is in the future"},
		{"worker=3,epoch=2030-01-01", "2030-01-01", ""},
	} {
		at, err := parseMoment(row.at)
		if err != nil {
			t.Fatal(err)
		}
		err = usableNow(mustLayout(t, row.layout), at)
		if (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s on %s: %v, want %q", row.layout, row.at, err, row.wrong)
		}
	}
}

func TestLayoutShowGolden(t *testing.T) {
	for _, row := range []struct{ layout, want string }{
		{"sonyflake", `sonyflake: time=39@10ms,sequence=8,datacenter=0,worker=16,epoch=1409529600000,order=written

0 ttttttttttttttttttttttttttttttttttttttt ssssssss wwwwwwwwwwwwwwww

   FIELD     BITS  FROM-TO  HOLDS
t  time        39    62-24  ticks of 10ms since 2014-09-01T00:00:00.000Z
s  sequence     8    23-16  0 to 255
w  worker      16     15-0  0 to 65,535

a worker makes    256 IDs a tick, 25,600 a second
workers           65,536
all workers make  1,677,721,600 IDs a second
IDs end           2188-11-16, in 162.0 years
in one tick       IDs of a worker are 65,536 apart
in JavaScript     strings: numbers lose the low bits of IDs from 2014-11-02 on
`},
		{"time=30@1h,segment=2,datacenter=3,worker=22,sequence=0,epoch=0", `time=30@1h0m0s,segment=2,datacenter=3,worker=22,sequence=0,epoch=0

0000000 tttttttttttttttttttttttttttttt gg ddd wwwwwwwwwwwwwwwwwwwwww

   FIELD       BITS  FROM-TO  HOLDS
t  time          30    56-27  ticks of 1h0m0s since 1970-01-01T00:00:00.000Z
g  segment        2    26-25  0 to 3
d  datacenter     3    24-22  0 to 7
w  worker        22     21-0  0 to 4,194,303

a worker makes    4 IDs a tick, 0.00111 a second
workers           65,536 of 4,194,304 (a cluster uses no more), in each of 8 datacenters
all workers make  72.8 IDs a second
IDs end           the year 9999 or later
in JavaScript     strings: numbers lose the low bits of IDs from 9625-09-28 on
`},
		{"uid-generator", `uid-generator: time=28@1s,datacenter=0,worker=22,sequence=13,epoch=1463673600000

0 tttttttttttttttttttttttttttt wwwwwwwwwwwwwwwwwwwwww sssssssssssss

   FIELD     BITS  FROM-TO  HOLDS
t  time        28    62-35  ticks of 1s since 2016-05-19T16:00:00.000Z
w  worker      22    34-13  0 to 4,194,303
s  sequence    13     12-0  0 to 8,191

a worker makes    8,192 IDs a tick, 8,192 a second
workers           65,536 of 4,194,304 (a cluster uses no more)
all workers make  536,870,912 IDs a second
IDs end           2024-11-20
in JavaScript     strings: numbers lose the low bits of IDs from 2016-05-22 on
usable now        no: its time field was used up on 2024-11-20. Give it another epoch, as in uid-generator,epoch=2026-11-21
`},
	} {
		l := mustLayout(t, row.layout)
		var b strings.Builder
		if err := showLayout(&b, l, describeLayout(l, someDay), someDay); err != nil || b.String() != row.want {
			t.Errorf("%v\n%s\nwant\n%s", err, b.String(), row.want)
		}
	}
}

func TestLayoutExplainGolden(t *testing.T) {
	r := call(t, "", "layout", "explain", "--layout", "leaf", "2123840256405929993")
	if want := `ID 2123840256405929993, layout leaf: time=41@1ms,datacenter=0,worker=10,sequence=12,epoch=1288834974657, from --layout

0 00111010111100101100101011101011110101011 0000000000 000000001001
0 ttttttttttttttttttttttttttttttttttttttttt wwwwwwwwww ssssssssssss

time       506362976171 ticks of 1ms after 2010-11-04T01:42:54.657Z
worker     0
sequence   9
made at    2026-11-20T18:05:50.828Z
its tick   2123840256405929984 to 2123840256410124287
as hex     1d796575eac00009
as base32  1TYB5EQNC0009
as base36  0g4w6jce5of7t
as base58  5vwL58xJuk4
as base62  2WtD4ixcUrx
`; r.code != 0 || r.stderr != "" || r.stdout != want {
		t.Errorf("%+v\nwant\n%s", r, want)
	}
	call(t, "16908295\nx\n", "layout", "explain", "--layout", "sonyflake,epoch=2021-01-01", "-o", "json").wants(t, exitFailure,
		`{"id":"16908295","time":"2021-01-01T00:00:00.010Z","timestamp_ms":1609459200010,"datacenter":0,"worker":7,"sequence":2,"layout":"time=39@10ms,sequence=8,datacenter=0,worker=16,epoch=1609459200000,order=written","layout_from":"--layout","bits":[{"name":"time","bits":"000000000000000000000000000000000000001","value":1},{"name":"sequence","bits":"00000010","value":2},{"name":"worker","bits":"0000000000000111","value":7}],"first":"16777216","last":"33554431"}`+"\n",
		"flaked: \"x\" is not an ID: IDs are decimal numbers from 0 to 9223372036854775807\nflaked: 1 of 2 could not be decoded\n")
	call(t, "", "layout", "explain", "--layout", "sonyflake,epoch=2021-01-01", "16908295").wants(t, exitOK, "made at    2021-01-01T00:00:00.010Z, or within 10ms after\n", "")
}

func TestLayoutCheck(t *testing.T) {
	for _, row := range []struct {
		name, args string
		code       int
		out, err   string
	}{
		{"can work", "check js53", exitOK, "in JavaScript     exact as numbers\n", ""},
		{"wider", "check wide14 --from leaf", exitOK, "IDs a second, a worker   4,096,000  16,384,000\n", ""},
		{"wider, order", "check wide14 --from leaf", exitOK, "\nnew IDs are above all old ones\n", ""},
		{"the same", "check leaf --from leaf", exitOK, "\nnew IDs are above all old ones\n", ""},
		{"numbers that were", "check sonyflake-v2 --from leaf", exitDegraded, "warning: IDs can repeat: until 20", "flaked: this layout works, with 2 warnings\n"},
		{"numbers that were, since when", "check sonyflake-v2 --from leaf", exitDegraded, ", new IDs can equal IDs that the old layout has made since 20", "this layout works, with 2 warnings"},
		{"an epoch that lifts", "check sonyflake-v2,epoch=1980-01-01 --from leaf", exitOK, "new IDs are above all old ones", ""},
		{"below", "check js53 --from leaf --since 2026-01-01", exitDegraded, "new IDs are below the old ones, and never above all of them\nwarning: IDs are not in order: at first, new IDs are below the old ones", "this layout works, with 2 warnings"},
		{"used up", "check uid-generator --from leaf", exitFailure, "warning: it cannot make IDs: its time field was used up on 2024-11-20", "this layout cannot be used"},
		{"another field of datacenters", "check twitter --from leaf", exitDegraded, "warning: the datacenter field has 5 bits instead of 0. Give --datacenter again\n", "this layout works, with a warning\n"},
		{"long ticks", "check time=35@10s,worker=10,sequence=12", exitDegraded, "warning: with a tick of 10s, nodes need --reserve 30s or more, but --reserve must be below 10s", "this layout works, with a warning\n"},
		{"JSON", "check wide14 --from leaf -o json", exitOK, `"stand": "above"`, ""},
		{"no layout", "check", exitUsage, "", "expected one layout, got 0 arguments"},
		{"blanks", "check worker=3, sequence=5", exitUsage, "", "got 2 arguments. Give a name or fields without blanks"},
		{"bad", "check snowcone", exitUsage, "", `layout: bad layout: "snowcone" is not a preset (leaf, twitter, `},
		{"bad from", "check leaf --from worker=99", exitUsage, "", `--from: bad layout`},
		{"since when", "check leaf --from leaf --since yesterday", exitUsage, "", `--since: "yesterday" is not a time`},
		{"since of what", "check leaf --since 2020", exitUsage, "", "--since needs the layout in use. Give --from LAYOUT or --zk"},
		{"show two", "show leaf twitter", exitUsage, "", "expected one layout, got 2 arguments"},
		{"show bad", "show worker=99", exitUsage, "", "layout: bad layout"},
		{"show by flag", "show --layout js53", exitOK, "js53: time=38@10ms", ""},
		{"choose", "choose --rate 200000 --nodes 50 --until 2060", exitOK, "\nrecommended: flaked cluster init --layout leaf\n", ""},
		{"choose one's own", "choose --rate 10000000 --nodes 8", exitOK, "\nrecommended: flaked cluster init --layout time=42@1ms,datacenter=0,worker=6,sequence=15,epoch=", ""},
		{"choose for JavaScript", "choose --js --rate 20000 --nodes 20 -o json", exitOK, `"name": "js53"`, ""},
		{"choose too much", "choose --js --rate 1000000 --nodes 2000", exitFailure, "", "no layout of 53 bits has 1,000,000 IDs per second for each of 8,000 workers until 2060-01-01. Give a lower --rate"},
		{"choose more than ZooKeeper keeps", "choose --rate 1 --nodes 20000", exitFailure, "", "no layout of 63 bits has"},
		{"choose nothing", "choose --rate 0", exitUsage, "", "--rate must be more than 0 and at most 1e12, not 0"},
		{"choose NaN", "choose --rate NaN", exitUsage, "", "--rate must be more than 0 and at most 1e12, not NaN"},
		{"choose no nodes", "choose --nodes 0", exitUsage, "", "--nodes must be 1 to 1048576, not 0"},
		{"choose little", "choose --spare 0.5", exitUsage, "", "--spare must be 1 to 1000 workers per node, not 0.5"},
		{"choose the past", "choose --until 2020", exitUsage, "", "--until must be in the future, not 2020"},
	} {
		t.Run(row.name, func(t *testing.T) {
			call(t, "", append([]string{"layout"}, strings.Fields(row.args)...)...).wants(t, row.code, row.out, row.err)
		})
	}
}

func TestLayoutShowJSON(t *testing.T) {
	var got layoutReport
	r := call(t, "", "layout", "show", "pearflower", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err, r)
	}
	if got.Name != "pearflower" || len(got.Fields) != 4 || got.Fields[1] != (fieldReport{"segment", 3, 31, 29, 8}) || got.IDsPerSecond != 4194304 || got.Ends != "2085-01-18T19:14:08.000Z" || got.Step != 1 || got.Unusable != "" {
		t.Errorf("%+v", got)
	}
}

// anyUsable draws a layout that can make IDs on someDay.
func anyUsable(t *rapid.T, name string) worker.Layout {
	return rapid.Custom(func(t *rapid.T) worker.Layout {
		l := worker.Layout{
			Epoch:          rapid.Int64Range(0, someDay.UnixMilli()).Draw(t, "epoch"),
			Unit:           rapid.SampledFrom([]time.Duration{1, 10, 1000}).Draw(t, "unit") * time.Millisecond,
			WorkerBits:     rapid.Uint8Range(1, 12).Draw(t, "worker"),
			SequenceBits:   rapid.Uint8Range(0, 14).Draw(t, "sequence"),
			DatacenterBits: rapid.Uint8Range(0, 3).Draw(t, "datacenter"),
		}
		l.TimeBits = rapid.Uint8Range(20, 63-l.WorkerBits-l.SequenceBits-l.DatacenterBits).Draw(t, "time")
		return l
	}).Filter(func(l worker.Layout) bool { return l.Validate() == nil && usableNow(l, someDay) == nil }).Draw(t, name)
}

// The IDs that two layouts make compare as changeOf says.
func TestChangeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, next := anyUsable(t, "old"), anyUsable(t, "next")
		if rapid.Bool().Draw(t, "same epoch") {
			next.Epoch = old.Epoch
			if usableNow(next, someDay) != nil {
				t.Skip()
			}
		}
		now := someDay.UnixMilli()
		since := rapid.Int64Range(old.Epoch, now).Draw(t, "since")
		r := changeOf(old, next, time.UnixMilli(since), someDay)

		// id draws an ID that layout l makes at the time ms.
		id := func(name string, l worker.Layout, ms int64) worker.ID {
			f := worker.Fields{
				Tick:       min(l.FloorTick(ms), l.MaxTick()),
				Worker:     rapid.SampledFrom([]int64{0, int64(l.Workers() - 1)}).Draw(t, name+" worker"),
				Datacenter: rapid.SampledFrom([]int64{0, int64(l.Datacenters() - 1)}).Draw(t, name+" datacenter"),
				Sequence:   rapid.SampledFrom([]int64{0, l.Sequences() - 1}).Draw(t, name+" sequence"),
			}
			id, err := l.Encode(f)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		was := id("old", old, rapid.SampledFrom([]int64{since, now, (since + now) / 2}).Draw(t, "made at"))
		end := next.Expires().UnixMilli() - 1
		if r.AboveMs > 0 {
			if r.AboveMs > end {
				t.Fatalf("above at %d, ends at %d", r.AboveMs, end)
			}
			// If AboveMs is now, the current tick may have begun before it.
			from := r.AboveMs
			if from == now {
				from += max(old.Unit, next.Unit).Milliseconds()
			}
			if is := id("next", next, rapid.Int64Range(min(from, end), end).Draw(t, "later")); is <= was && from <= end {
				t.Fatalf("%+v: %d is not above %d", r, is, was)
			}
		} else if is := id("last", next, end); is > id("old's last", old, now) && next.FloorTick(end) == next.MaxTick() {
			top, err := next.Encode(worker.Fields{Tick: next.MaxTick()})
			if err != nil || top > id("old's last again", old, now)+1<<old.Parts()[0].Shift {
				t.Fatalf("never above, it says: %+v, and %d is", r, top)
			}
		}
		if r.Stand == standBelow {
			until := r.WithinMs - 1
			if r.WithinMs == 0 {
				until = end
			}
			// In the last tick before WithinMs, new IDs may already reach the old ones.
			until -= next.Unit.Milliseconds()
			if until >= now {
				if is := id("below", next, rapid.Int64Range(now, until).Draw(t, "before")); is > was {
					t.Fatalf("%+v: %d is above %d", r, is, was)
				}
			}
		}
		if (r.Stand == standWithin) != (r.SameMs != 0) && old.Epoch != 0 {
			t.Fatalf("%+v", r)
		}
		if r.EpochMs >= 0 {
			lifted := next
			lifted.Epoch = r.EpochMs
			if again := changeOf(old, lifted, time.UnixMilli(since), someDay); again.Stand != standAbove {
				t.Fatalf("with epoch %d: %+v", r.EpochMs, again)
			}
		}
	})
}

// Every layout that is chosen does what was asked for.
func TestChoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := need{
			rate:    math.Exp2(rapid.Float64Range(-5, 30).Draw(t, "rate")),
			workers: rapid.IntRange(1, 1<<17).Draw(t, "workers"),
			until:   someDay.AddDate(rapid.IntRange(0, 300).Draw(t, "years"), 0, 1),
			bits:    rapid.SampledFrom([]uint8{53, 63}).Draw(t, "bits"),
		}
		choices := choose(n, someDay)
		for _, c := range choices {
			l, err := worker.ParseLayout(c.Layout)
			if err != nil || c.Bits > n.bits || node.Slots(l) < n.workers || float64(l.Sequences())/l.Unit.Seconds() < n.rate || l.Expires().Before(n.until) || usableNow(l, someDay) != nil {
				t.Fatalf("%+v for %+v: %v", c, n, err)
			}
			if id, err := l.Encode(worker.Fields{Tick: l.MaxTick(), Worker: int64(l.Workers() - 1)}); err != nil || id>>n.bits != 0 {
				t.Fatalf("%s has %d, %v", l, id, err)
			}
		}
		// With ticks of 10 ms, no more than this many bits are needed.
		years := n.until.Sub(someDay).Hours()/24/365 + 1
		bits := math.Ceil(math.Log2(years*365.25*24*3600*100)) + math.Ceil(math.Log2(float64(n.workers))) + math.Ceil(math.Log2(max(1, n.rate/100))) + 2
		if len(choices) == 0 && bits <= float64(n.bits) && n.workers <= 1<<16 && n.rate < 1<<30 {
			t.Fatalf("nothing for %+v, and %v bits would do", n, bits)
		}
	})
}

// docs/layouts.md is right about the presets, and every layout in it can be parsed.
func TestLayoutsDocument(t *testing.T) {
	data, err := os.ReadFile("../../docs/layouts.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	for _, p := range worker.Presets() {
		c := capacityOf(p.Layout)
		_, line, found := strings.Cut(doc, "\n| `"+p.Name+"`")
		line, _, _ = strings.Cut(line, "\n")
		if !found {
			t.Errorf("%s is not there", p.Name)
			continue
		}
		for _, want := range []string{grouped(int64(p.Layout.Workers())), perSecond(c.IDsPerSecond), c.Begins[:10], c.Ends[:10]} {
			asLeaf := strings.Contains(line, "as `leaf`") && c.Begins == capacityOf(worker.Leaf()).Begins && c.Ends == capacityOf(worker.Leaf()).Ends
			if !strings.Contains(line, want) && !(asLeaf && strings.HasPrefix(want, "20")) {
				t.Errorf("%s: %s is not in %q", p.Name, want, line)
			}
		}
	}
	written := regexp.MustCompile("[` ]((?:[a-z0-9-]+,)?(?:time|segment|datacenter|worker|sequence|epoch)=[0-9][^` \n]*)")
	found := written.FindAllStringSubmatch(doc, -1)
	for _, m := range found {
		if _, err := worker.ParseLayout(strings.TrimSuffix(m[1], ",")); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	if len(found) < 15 {
		t.Errorf("only %d layouts are written there", len(found))
	}
}

// The layout commands read a cluster's layout from ZooKeeper.
func TestLayoutOfACluster(t *testing.T) {
	zk := zktest.Chroot(t, zktest.Shared(t))
	call(t, "", "cluster", "init", "--zk", zk, "--layout", "sonyflake").wants(t, exitOK, "workers          65536\n", "")
	call(t, "", "layout", "show", "--zk", zk).wants(t, exitOK, "sonyflake: time=39@10ms,sequence=8", "")
	call(t, "", "layout", "explain", "--zk", zk, aSonyflake).wants(t, exitOK, "\nsequence   13\nworker     7\n", "")
	call(t, "", "layout", "check", "leaf", "--zk", zk).wants(t, exitOK, "\nnew IDs are above all old ones\n", "")
	call(t, "", "layout", "check", "leaf", "--zk", zk, "--cluster", "other").wants(t, exitFailure, "", "cluster not found")
	call(t, "", "cluster", "init", "--zk", zk, "--layout", "time=39@10ms,worker=16,sequence=8,epoch=2014-09-01").
		wants(t, exitFailure, "", "differs from the cluster's time=39@10ms,sequence=8,datacenter=0,worker=16")
}
