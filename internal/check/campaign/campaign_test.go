package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/certtest"
	"github.com/flaked/flaked/internal/testkit/faultdisk"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

var (
	chaosFor    = flag.Duration("chaos.for", 15*time.Second, "make faults for so long")
	chaosSeed   = flag.Uint64("chaos.seed", 0, "which faults; 0: others each time")
	chaosReport = flag.String("chaos.report", "", "keep the report and the logs in this `directory`")
	chaosOnly   = flag.String("chaos.only", "", "only the kinds of faults whose names hold one of these, `a,b`")
	chaosSecure = flag.Bool("chaos.secure", false, "the nodes use TLS and digest authentication with ZooKeeper")
	chaosSoak   = flag.Duration("chaos.soak", 0, "only one fault so often, and more that makes a soak")
	chaosLease  = flag.Duration("chaos.lease", time.Minute, "the nodes' leases")
	chaosBinary = flag.String("chaos.binary", "",
		"try this `flaked`, built with the tag testclock, and not one built now")
)

// These are times of the nodes. They are short, so that a run has many events.
const (
	slowest = time.Second // longest heartbeat: confirm/2
	confirm = 2 * time.Second
	reserve = 3 * time.Second
)

// healthyWithin returns the time after any fault within which all nodes must be well:
// frozenFor and 20 s more. In a soak nothing is frozen.
func healthyWithin() time.Duration {
	if soaks() {
		return time.Minute
	}
	return frozenFor() + 20*time.Second
}

// frozenFor returns the longest time for which registration can be frozen after a loss of data.
// A holder that was cut off can notice the loss while its lease runs, and freezes registration
// from then on. After the freeze a lost slot stays with its holder for 5 s more. 5 s are added
// for ZooKeeper's leader, whose clock may be ahead.
func frozenFor() time.Duration {
	frozen := coordinator.Cluster{LeaseMs: chaosLease.Milliseconds(), ConfirmMs: confirm.Milliseconds()}.Freeze(0)
	return *chaosLease + time.Duration(frozen.FrozenUntil)*time.Millisecond + 10*time.Second
}

type campaign struct {
	*timeline
	t        *testing.T
	site     *harness.Site
	dir      string // of logs and the report
	binary   string
	zk       *zktest.Ensemble
	release  string   // of ZooKeeper
	secure   []string // flags for a ZooKeeper with TLS and digest authentication
	auth     string   // user:password of it
	copied   string   // a copy of ZooKeeper's data
	copiedAt int64
	machines []*machine
	loads    []*harness.Load
	seq      sequences
	playing  context.Context // ends with the run
	turns    chan struct{}   // of faults, in a soak

	ended   int64 // when the nodes were told to stop
	delays  []lateness
	watched string       // a directory on a disk without faults
	held    map[int]bool // by worker held at the end: it is released at the stop
	state   endState     // ZooKeeper's records after the stop

	// calm is held for writing while ZooKeeper loses data. A node's fault begins only after
	// its goroutine has held calm for reading.
	calm sync.RWMutex
}

// TestCampaign runs five nodes on three ZooKeeper servers, under load, and makes random faults. `make chaos` runs it
// for half an hour, `make test` for some seconds.
//
// One goroutine per machine makes one fault after the other there, independently of the other
// machines. Another goroutine does the same to ZooKeeper. So faults of different machines
// overlap. On each machine the next fault begins only when the node is well again, so the
// effect of each fault is known.
//
// At the end the judge checks the IDs, and the campaign checks the rest. A node must
// serve, except during faults of its own that stop it. It must not serve while its clock is
// behind, or beyond its reserved bound or its lease bound. Other clients ask for values of named sequences while an
// operator changes these sequences.
//
// The results of a run are in report.txt. The seed determines the faults, their
// order and their parameters. The exact times of the faults depend on the machine's speed.
func TestCampaign(t *testing.T) {
	c := newCampaign(t)
	var over context.CancelFunc
	c.playing, over = context.WithCancel(t.Context())
	defer over()
	c.prepare()
	c.play(over)
	if err := c.conclude(); err != nil {
		t.Fatal(err)
	}
	for _, w := range c.wrong {
		t.Error(w)
	}
}

// newCampaign starts ZooKeeper, and draws a seed unless one is given.
func newCampaign(t *testing.T) *campaign {
	if *chaosSeed == 0 {
		*chaosSeed = rand.Uint64N(1e6) + 1
	}
	t.Logf("seed %d", *chaosSeed)
	c := &campaign{t: t, dir: t.TempDir(), binary: *chaosBinary, turns: make(chan struct{})}
	var connect string
	if *chaosSecure {
		ca, dir := certtest.NewCA(t, "flaked's campaign"), t.TempDir()
		c.zk, c.auth = zktest.Three(t, zktest.Secure(t, ca)...), "campaign:secret"
		c.secure = []string{"--zk-tls-ca", certtest.Write(t, dir, "ca.pem", ca.PEM),
			"--zk-auth-file", certtest.Write(t, dir, "auth", []byte(c.auth))}
		connect = c.zk.SecureAddr()
	} else {
		c.zk = zktest.Three(t)
		connect = c.zk.Addr()
	}
	c.release = c.zk.Version(t)
	if c.binary == "" {
		c.binary = harness.Clocked.Binary(t)
	}
	if *chaosReport != "" {
		c.dir = *chaosReport
		if err := os.MkdirAll(c.dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.site = &harness.Site{T: t, Connect: connect, IDs: harness.NewHistory(), Values: harness.NewLedger()}
	c.timeline = &timeline{began: c.site.IDs.Began}
	return c
}

// prepare creates the machines, and starts the nodes and their clients.
func (c *campaign) prepare() {
	rng := rand.New(rand.NewPCG(*chaosSeed, 0))
	// A subnet of the run's own: no client's ephemeral port can occupy the nodes' port.
	subnet := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(250), rand.IntN(250))
	c.watched = c.dir
	if os.Geteuid() == 0 {
		c.watched = faultdisk.New(c.t).Dir()
	}
	for i := range 5 {
		m := c.newMachine(subnet, time.Duration(rng.IntN(301)-150)*time.Millisecond)
		c.machines = append(c.machines, m)
		c.note(m.Name, "released on exit: %v", m.release)
		m.begin()
		if i == 0 && !harness.Waits(c.t.Context(), 60*time.Second, m.serves) {
			c.t.Fatalf("%s has not made the cluster: %s", m.Name, harness.LastLines(m.Proc.Log(), 1))
		}
	}
	for _, m := range c.machines {
		if !harness.Waits(c.t.Context(), 60*time.Second, m.connected) {
			c.t.Fatalf("%s is not ready: %s", m.Name, harness.LastLines(m.Proc.Log(), 1))
		}
		c.loads = append(c.loads, m.load())
	}
	c.prepareSequences()
	c.copiedAt = c.now()
	c.copied = c.zk.Snapshot(c.t)
	c.askForValues()
}

// play makes faults for the duration of the run, waits until all nodes are well, and stops
// them.
func (c *campaign) play(over func()) {
	ctx, cancel := context.WithTimeout(c.t.Context(), *chaosFor)
	defer cancel()
	var tracks, watch sync.WaitGroup
	watch.Go(c.watch)
	if soaks() {
		watch.Go(c.drift)
		watch.Go(c.measures)
		tracks.Go(func() { c.callTurns(ctx) })
	}
	watch.Go(func() { c.watchDisk(filepath.Join(c.watched, "watched")) })
	for _, m := range c.machines {
		tracks.Go(func() { c.faultTrack(ctx, m) })
	}
	tracks.Go(func() { c.operate(ctx) })
	c.zkFaultTrack(ctx)
	tracks.Wait()
	c.stop()
	over()
	for _, l := range c.loads {
		l.End()
	}
	for _, s := range c.seq.clients {
		s.End()
	}
	watch.Wait()
}

// stop waits until all nodes are well, and stops them.
func (c *campaign) stop() {
	last := c.now()
	for _, m := range c.machines {
		if !harness.Waits(c.t.Context(), healthyWithin()-time.Duration(c.now()-last), m.connected) {
			c.violated(m.Name, "not well %s after the last fault", healthyWithin())
		}
	}
	c.note("all", "well %s after the last fault", time.Duration(c.now()-last).Round(time.Millisecond))
	c.held = map[int]bool{}
	for _, m := range c.machines {
		m.lease = time.Duration(m.figure("lease_left_ms")) * time.Millisecond
	}
	for _, m := range c.machines {
		number, err := m.holds()
		if err != nil {
			c.violated(m.Name, "is well, and holds no worker: %v", err)
			continue
		}
		c.held[number] = m.release
	}
	c.shows(slices.Sorted(maps.Keys(c.held)))
	c.ended = c.now()
	for _, m := range c.machines {
		m.end(syscall.SIGTERM)
	}
	c.state = c.shows(nil)
	for _, m := range c.machines {
		c.wrong = append(c.wrong, m.leavesNothing()...)
	}
}

// trueMs converts a time of the run to true time, Unix ms.
func (c *campaign) trueMs(at int64) int64 {
	return c.began.Round(0).Add(time.Duration(at)).UnixMilli()
}

// conclude checks the run and writes the report. Its error concerns files.
func (c *campaign) conclude() error {
	verdict := c.site.IDs.Judge(c.rules())
	c.site.IDs.Answers = nil
	for _, f := range verdict.Findings {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: %s", f.Check, f.Text))
	}
	c.wrong = append(c.wrong, c.state.wrongWith(c.held, verdict.Highest, c.site.IDs, c.lossy())...)
	c.availability()
	if err := c.endings(); err != nil {
		return err
	}
	sequences := c.judgeSequences()
	traces, err := c.judgeTraces()
	if err != nil {
		return err
	}
	text := c.text(verdict, c.growth()+c.recoveries()+"\n"+sequences+"\n"+traces+"\n")
	c.t.Log("\n" + text)
	if *chaosReport == "" {
		return nil
	}
	return c.keep(text)
}

// tracks returns, by node, the offsets that its issuing clock may have had over time.
func (c *campaign) tracks() (all [][]showing) {
	for _, m := range c.machines {
		all = append(all, track(m.clocks))
	}
	return all
}

func (c *campaign) rules() harness.Rules {
	var r harness.Rules
	tracks := c.tracks()
	for _, m := range c.machines {
		r.Unordered = append(r.Unordered, steps(m)...)
	}
	r.Times = func(a harness.Answer) (low, high int64) {
		l, h := shown(tracks[a.Node], a.Asked, a.Got)
		return c.trueMs(a.Asked) + l.Milliseconds() - earlyMs, c.trueMs(a.Got) + h.Milliseconds() + leapMs
	}
	for _, f := range c.faults {
		if f.bound == 0 || f.released == 0 {
			continue
		}
		_, h := shown(tracks[f.node], f.stopped, f.stopped)
		r.Forbidden = append(r.Forbidden, harness.Forbidden{
			Span: harness.Span{Node: uint16(f.node), From: f.stopped, To: f.released},
			Ms:   c.trueMs(f.stopped) + (h + f.bound).Milliseconds() + slackMs,
			Why:  f.kind.name,
		})
	}
	return r
}
