// Package chaos is the fault campaign. It runs five nodes on a real
// ZooKeeper ensemble of three servers, under load, and makes random faults. `make chaos` runs
// it for half an hour, `make test` for some seconds.
//
// Each node is a machine with
//   - flaked, built with a clock that a test can step,
//   - a wall clock that the campaign steps while the process runs (internal/testkit/ownclock),
//   - a link to each ZooKeeper server that breaks on demand (internal/testkit/faultnet),
//   - as root, a file system that fills up, becomes read-only and stalls (internal/testkit/faultdisk).
//
// One goroutine per machine makes one fault after the other there, independently of the other
// machines. Another goroutine does the same to ZooKeeper. So faults of different machines
// overlap. On each machine the next fault begins only when the node is well again, so the
// effect of each fault is known.
//
// Clients record every ID that they receive, and every request that was not answered with an
// ID. At the end judge_test.go checks the IDs, and the campaign checks the rest. A node must
// serve, except during faults of its own that stop it. It must not serve while its clock is
// behind, or beyond its reserved bound or its lease bound.
//
// Other clients ask for values of named sequences while an operator changes these sequences. The sequences' own
// checks are in seqjudge_test.go.
//
// The results of a run are in report.txt. The seed determines the faults, their
// order and their parameters. The exact times of the faults depend on the machine's speed.
package chaos

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/faultdisk"
	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/worker"
)

var (
	duration = flag.Duration("chaos.for", 15*time.Second, "make faults for so long")
	seed     = flag.Uint64("chaos.seed", 0, "which faults; 0: others each time")
	report   = flag.String("chaos.report", "", "keep the report and the logs in this `directory`")
	only     = flag.String("chaos.only", "", "only the kinds of faults whose names hold one of these, `a,b`")
	lease    = flag.Duration("chaos.lease", time.Minute, "the nodes' leases")
	binary   = flag.String("chaos.binary", "", "try this `flaked`, built with the tag testclock, and not one built now")
)

// These are times of the nodes. They are short, so that a run has many events.
const (
	nodes   = 5
	slowest = time.Second // longest heartbeat: confirm/2
	confirm = 2 * time.Second
	reserve = 3 * time.Second
)

// healthyWithin returns the time after any fault within which all nodes must be well:
// frozenFor and 20 s more.
func healthyWithin() time.Duration { return frozenFor() + 20*time.Second }

// frozenFor returns the longest time for which registration can be frozen after a loss of data.
// A freeze lasts for the lease and 10 s. A holder that was cut off can notice the loss while its
// lease runs, and freezes registration from then on. After the freeze a lost slot stays with its
// holder for 5 s more. 5 s are added for ZooKeeper's leader, whose clock may be ahead.
func frozenFor() time.Duration { return 2*(*lease) + 20*time.Second }

type campaign struct {
	*timeline
	t        *testing.T
	dir      string
	binary   string
	zk       *zktest.Ensemble
	copied   string // a copy of ZooKeeper's data
	copiedAt int64
	machines []*machine
	loads    []*clients
	seq      sequences
	conns    atomic.Uint32
	over     chan struct{} // closed at the end of the run

	ended int64 // when the nodes were told to stop
	pace  pace
	// watched is a directory on a disk without faults.
	watched string
	held    map[int]bool // by worker held at the end: it is released at the stop
	state   endState     // ZooKeeper's records after the stop

	// calm is held for writing while ZooKeeper loses data. A node's fault begins only after
	// its goroutine has held calm for reading.
	calm      sync.RWMutex
	trueStart time.Time
}

// layout is the layout of the cluster, the default one.
var layout = worker.Leaf()

func TestCampaign(t *testing.T) {
	zk := zktest.Three(t)
	if *seed == 0 {
		*seed = rand.Uint64N(1e6) + 1
	}
	t.Logf("seed %d", *seed)
	c := &campaign{
		timeline: &timeline{began: time.Now()}, t: t, dir: t.TempDir(), binary: *binary, zk: zk, over: make(chan struct{}),
	}
	c.trueStart = c.began.Round(0)
	if c.binary == "" {
		c.binary = build(t, c.dir, "cmd/flaked")
	}
	c.prepare()
	c.play()
	if err := c.conclude(); err != nil {
		t.Fatal(err)
	}
	for _, w := range c.wrong {
		t.Error(w)
	}
}

// build builds a program like a release, except for a wall clock that the campaign can step. It
// returns the path.
func build(t *testing.T, dir, pkg string) string {
	path := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-trimpath", "-tags", ownclock.Tag, "-o", path, "github.com/flaked/flaked/"+pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// prepare creates the machines, and starts the nodes and their clients.
func (c *campaign) prepare() {
	rng := rand.New(rand.NewPCG(*seed, 0))
	// A subnet of the run's own: no client's ephemeral port can occupy the nodes' port.
	subnet := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(250), rand.IntN(250))
	c.watched = c.dir
	if os.Geteuid() == 0 {
		c.watched = faultdisk.New(c.t).Dir()
	}
	for i := range nodes {
		m := &machine{c: c, id: i, listen: fmt.Sprintf("%s%d:7609", subnet, i+1), base: time.Duration(rng.IntN(301)-150) * time.Millisecond, flags: drawFlags(i)}
		m.dir = filepath.Join(c.dir, fmt.Sprint("n", i))
		if os.Geteuid() == 0 {
			m.disk = faultdisk.New(c.t)
			m.dir = filepath.Join(m.disk.Dir(), "state")
		}
		for _, addr := range c.zk.Addrs() {
			l, err := faultnet.New(addr)
			if err != nil {
				c.t.Fatal(err)
			}
			c.t.Cleanup(l.Close)
			m.links = append(m.links, l)
		}
		path := filepath.Join(c.dir, fmt.Sprintf("n%d.log", i))
		var err error
		if m.log, err = os.Create(path); err != nil {
			c.t.Fatal(err)
		}
		m.set(m.base)
		c.machines = append(c.machines, m)
		c.note(m.name(), "holds %s", m.flags)
		m.start()
		c.t.Cleanup(func() {
			m.signal(syscall.SIGCONT)
			m.stop(syscall.SIGKILL)
			m.supervise.Wait()
			m.log.Close()
		})
		if i == 0 && !within(c.t.Context(), 60*time.Second, m.serves) {
			c.t.Fatalf("%s has not made the cluster: %s", m.name(), m.lastLog())
		}
	}
	for _, m := range c.machines {
		if !within(c.t.Context(), 60*time.Second, m.connected) {
			c.t.Fatalf("%s is not ready: %s", m.name(), m.lastLog())
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
func (c *campaign) play() {
	ctx, cancel := context.WithTimeout(c.t.Context(), *duration)
	defer cancel()
	var tracks, watch sync.WaitGroup
	watch.Go(c.watch)
	watch.Go(c.watchRecords)
	watch.Go(func() { c.watchDisk(filepath.Join(c.watched, "watched")) })
	for _, m := range c.machines {
		tracks.Go(func() { c.faultTrack(ctx, m) })
	}
	tracks.Go(func() { c.operate(ctx) })
	c.zkFaultTrack(ctx)
	tracks.Wait()

	last := c.now()
	for _, m := range c.machines {
		if !within(c.t.Context(), healthyWithin()-time.Duration(c.now()-last), m.connected) {
			c.violated(m.name(), "not well %s after the last fault", healthyWithin())
		}
	}
	c.note("all", "well %s after the last fault", time.Duration(c.now()-last).Round(time.Millisecond))
	c.held = map[int]bool{}
	for _, m := range c.machines {
		numbers, err := m.workers()
		if err != nil || len(numbers) != 1 {
			c.violated(m.name(), "is well, and holds workers %v: %v", numbers, err)
		}
		for _, number := range numbers {
			c.held[number] = m.flags.release
		}
	}
	c.shows(slices.Sorted(maps.Keys(c.held)))
	c.ended = c.now()
	for _, m := range c.machines {
		m.stop(syscall.SIGTERM)
	}
	c.state = c.shows(nil)
	for _, m := range c.machines {
		c.wrong = append(c.wrong, m.leavesNothing()...)
	}
	close(c.over)
	for _, l := range c.loads {
		l.wg.Wait()
	}
	c.seq.wg.Wait()
	watch.Wait()
}

// deck draws kinds of faults in random order. Each kind comes once before any comes again.
type deck struct {
	rng   *rand.Rand
	kinds []*kind
	left  []*kind
}

func (d *deck) deal() *kind {
	if len(d.left) == 0 {
		d.left = slices.Clone(d.kinds)
		d.rng.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	k := d.left[0]
	d.left = d.left[1:]
	return k
}

// chosen returns the kinds that -chaos.only selects. It leaves out faults of disks if the
// machines have no disks of their own.
func (c *campaign) chosen(kinds []*kind) []*kind {
	return slices.DeleteFunc(kinds, func(k *kind) bool {
		wanted := slices.ContainsFunc(strings.Split(*only, ","), func(part string) bool { return strings.Contains(k.name, part) })
		return !wanted || strings.HasPrefix(k.name, "disk") && c.machines[0].disk == nil
	})
}

// fits reports whether the remaining time suffices for a fault of the kind.
func fits(ctx context.Context, k *kind) bool {
	end, _ := ctx.Deadline()
	return time.Until(end) > k.least
}

// faultTrack makes one fault after the other on a machine until ctx ends. After each fault it waits
// until the node is well.
func (c *campaign) faultTrack(ctx context.Context, m *machine) {
	rng := rand.New(rand.NewPCG(*seed, uint64(m.id)+1))
	d := &deck{rng: rng, kinds: c.chosen(nodeKinds(m.flags.release))}
	for len(d.kinds) > 0 && ctx.Err() == nil {
		pass(ctx, time.Duration(rng.IntN(2000))*time.Millisecond)
		k := d.deal()
		if !fits(ctx, k) {
			continue
		}
		c.calm.RLock()
		x := &attack{ctx: ctx, rng: rng, kind: k, m: m, c: c}
		c.calm.RUnlock()
		err := k.run(x)
		c.done(x, err)
		if x.fault == nil {
			continue
		}
		if !within(c.t.Context(), healthyWithin(), c.serving(m, &x.fault.served)) {
			c.violated(m.name(), "does not serve %s after %s", healthyWithin(), k.name)
		}
		if within(c.t.Context(), healthyWithin(), m.connected) {
			m.caughtUp()
		} else {
			c.violated(m.name(), "not well %s after %s", healthyWithin(), k.name)
		}
		c.set(&x.fault.well)
		if k.untilWell || k.fromDisk && c.away(x.fault.injected, x.fault.served) {
			c.set(&x.fault.leased)
		}
	}
}

// serving returns a function that reports whether the node has served for the last 300 ms. It
// stores in since when the node began to serve. The 300 ms are needed because a node may serve
// for a moment before it notices that its clock or its disk is bad.
func (c *campaign) serving(m *machine, since *int64) func() bool {
	var from int64
	return func() bool {
		if !m.serves() {
			from = 0
			return false
		}
		if from == 0 {
			from = c.now()
			c.set(since)
		}
		return c.now()-from > int64(300*time.Millisecond)
	}
}

func (c *campaign) done(x *attack, err error) {
	if err != nil {
		c.violated("campaign", "%s cannot be done: %v", x.kind.name, err)
	}
	if x.fault != nil {
		c.set(&x.fault.healed)
		c.note(x.fault.target(), "%s: over", x.kind.name)
	}
}

// zkLane makes one fault of ZooKeeper after the other until ctx ends. It must run on the test's
// goroutine, because zktest may end the test.
func (c *campaign) zkFaultTrack(ctx context.Context) {
	rng := rand.New(rand.NewPCG(*seed, 100))
	d := &deck{rng: rng, kinds: c.chosen(zkKinds())}
	for len(d.kinds) > 0 && ctx.Err() == nil {
		pass(ctx, time.Second+time.Duration(rng.IntN(5000))*time.Millisecond)
		k := d.deal()
		if !fits(ctx, k) {
			continue
		}
		x := &attack{ctx: ctx, rng: rng, kind: k, c: c}
		if k.loses() {
			within(ctx, healthyWithin(), c.nobodyHeldUp)
			c.calm.Lock()
		}
		if !k.loses() || within(ctx, 20*time.Second, c.witnessed) {
			c.done(x, k.run(x))
		}
		if k.loses() {
			c.calm.Unlock()
		}
		if x.fault != nil {
			c.set(&x.fault.served)
		}
		// All leases must be fresh before the next fault.
		var short []string
		ok := within(ctx, healthyWithin(), func() bool {
			short = nil
			for _, m := range c.machines {
				if c.hasToServe(m.id) && !c.freshLease(m) {
					short = append(short, m.name())
				}
			}
			return short == nil
		})
		if !ok && ctx.Err() == nil {
			c.violated("ZooKeeper", "%s after %s leases have not been extended: %v", healthyWithin(), k.name, short)
		}
		if x.fault != nil {
			c.set(&x.fault.well)
		}
	}
}

// hasToServe reports whether the node has no fault now for which it may refuse, at once or when
// its bound has run down.
func (c *campaign) hasToServe(node int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	return !slices.ContainsFunc(c.faults, func(f *fault) bool {
		// For a fault with a bound, impaired is the time at which the bound ends. A
		// node with such a fault is left out before that time too.
		return f.node == node && f.well == 0 && (f.impaired != 0 && f.impaired <= now || f.bound != 0)
	})
}

// away reports whether ZooKeeper had a fault at any time between from and to. A fault of
// ZooKeeper lasts until the nodes have fresh leases again.
func (c *campaign) away(from, to int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.faults, func(f *fault) bool {
		return f.node < 0 && f.injected <= to && (f.well == 0 || f.well >= from)
	})
}

// nobodyHeldUp reports whether all faults of nodes that began before the end of the last freeze
// are over. A node with such a fault may wait for a worker, one of its two perhaps. Without this
// wait, repeated losses of data could freeze registration for ever.
func (c *campaign) nobodyHeldUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var thawed int64 // the end of the last freeze
	for _, f := range c.faults {
		if f.kind.loses() {
			thawed = max(thawed, cmp.Or(f.well, c.now())+int64(frozenFor()))
		}
	}
	return !slices.ContainsFunc(c.faults, func(f *fault) bool {
		return f.node >= 0 && f.well == 0 && f.injected <= thawed
	})
}

// frozen reports whether registration may have been frozen at any time between from and to.
func (c *campaign) frozen(from, to int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.faults, func(f *fault) bool {
		return f.kind.loses() && f.injected <= to && (f.well == 0 || f.well+int64(frozenFor()) >= from)
	})
}

// isWell reports whether the machine has no fault and has recovered from all earlier ones.
func (c *campaign) isWell(m *machine) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		if f.node == m.id && f.well == 0 {
			return false
		}
	}
	return true
}

// witnessed reports whether at least two nodes are well, so that they notice a loss of data.
func (c *campaign) witnessed() bool {
	well := 0
	for _, m := range c.machines {
		if c.isWell(m) {
			well++
		}
	}
	return well >= 2
}

// workersOf returns the workers of the node. It uses a connection of its own, because
// machine.probe belongs to the goroutine that runs faultTrack.
func (c *campaign) workersOf(m *machine) ([]int, error) {
	other := &machine{c: c, listen: m.listen}
	defer other.hangUp()
	return other.workers()
}

func (c *campaign) freshLease(m *machine) bool {
	other := &machine{c: c, listen: m.listen}
	defer other.hangUp()
	return other.freshLease()
}

func (m *machine) hangUp() {
	if m.probe != nil {
		m.probe.Close()
	}
}

// trueMs converts a time of the run to true time, Unix ms.
func (c *campaign) trueMs(at int64) int64 { return c.trueStart.Add(time.Duration(at)).UnixMilli() }

// conclude checks the run and writes the report. Its error concerns files.
func (c *campaign) conclude() error {
	var answers []Answer
	for _, l := range c.loads {
		answers = append(answers, l.answers...)
		l.answers = nil
	}
	verdict := Judge(answers, c.rules())
	for _, f := range verdict.Findings {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: %s", f.Check, f.Text))
	}
	c.wrong = append(c.wrong, c.state.wrongWith(c.held, verdict.Highest, layout, c.lossy())...)
	c.availability()
	if err := c.endings(); err != nil {
		return err
	}
	sequences := c.judgeSequences()
	figures := c.recoveries() + "\n" + sequences + "\n"
	text := c.text(verdict, figures)
	c.t.Log("\n" + text)
	if *report == "" {
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

func (c *campaign) rules() Rules {
	var r Rules
	tracks := c.tracks()
	for _, m := range c.machines {
		r.Unordered = append(r.Unordered, steps(m)...)
	}
	r.Times = func(a Answer) (low, high int64) {
		l, h := shown(tracks[a.Node], a.Asked, a.Got)
		return c.trueMs(a.Asked) + l.Milliseconds() - earlyMs, c.trueMs(a.Got) + h.Milliseconds() + leapMs
	}
	for _, f := range c.faults {
		if f.bound == 0 || f.released == 0 {
			continue
		}
		_, h := shown(tracks[f.node], f.stopped, f.stopped)
		r.Forbidden = append(r.Forbidden, Forbidden{
			Span: Span{Node: uint16(f.node), From: f.stopped, To: f.released},
			From: c.trueMs(f.stopped) + (h + f.bound).Milliseconds() + slackMs,
			Why:  f.kind.name,
		})
	}
	return r
}
