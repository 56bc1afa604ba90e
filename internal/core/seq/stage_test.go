package seq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/internal/testkit/memdir"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// stage is a cluster in memory with some nodes, for tests that play one course of events.
type stage struct {
	t *testing.T
	*memcluster.Cluster
	now   int64 // ms since the start
	nodes []*actor
	// actors is the number of nodes that there have been.
	actors int
}

// actor is a node of a stage. Its tenure is always confirmed, and it raises the incarnation as soon as it finds a loss
// of data.
type actor struct {
	*stage
	*memcluster.Machine
	store *memzk.Session
	is    *Rounds
	calls func(memzk.Call) memzk.Fault // nil: no faults
	// slot is the node's record.
	slot string
	// hold, if not nil, replaces the answer of Slot.
	hold func() Slot
	// reports are the node's reports.
	reports []string
	// deaf: the node does not raise the incarnation.
	deaf bool
	// cluster is the cluster that the node has joined. The zero value stands for the stage's cluster.
	cluster ClusterInfo
	// fenced: the node has lost its worker, and has no other one yet.
	fenced bool
	// dir is the state directory, if the node has one: see openJournal.
	dir *memDir
	// address is the address at which others ask the node, "" for none: see pass_test.go.
	address string
	pass    func(ctx context.Context, ask ordered.PeerRequest) (ordered.Answer, error)
	flights []func()
	goes    func(func()) // calls a function in a goroutine, as a process does
}

const stageConfirm = 12 * time.Second

// clusterAt returns a cluster in memory at *now ms since simEpoch.
func clusterAt(now *int64) *memcluster.Cluster {
	return memcluster.New(func() int64 { return (simEpoch + *now) * 1e6 })
}

// machineOf returns a machine of a cluster at so many ms since simEpoch. Its boot clock counts from there.
func machineOf(c *memcluster.Cluster, now int64) *memcluster.Machine {
	m := c.Machine()
	m.SetBoot((now + 1) * 1e6)
	return m
}

// elapsedOf returns what a machine of clusterAt measures.
func elapsedOf(now *int64) *timeguard.Elapsed {
	return timeguard.NewElapsed(machineOf(clusterAt(now), *now))
}

// anyIncarnation is Slot.Incarnation of a node that has always sent a heartbeat since.
const anyIncarnation = math.MaxInt64

func newStage(t *testing.T) *stage {
	s := &stage{t: t}
	s.Cluster = clusterAt(&s.now)
	s.Mem.SetEpoch(1)
	createCluster(s.Mem.Session(), 0)
	return s
}

// newOrder returns a stage with one node, and the sequence order with a ceiling of 1,000 values a second.
func newOrder(t *testing.T) (*stage, *actor) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000))
	return s, a
}

// node adds a node whose confirming time is over.
func (s *stage) node() *actor {
	a := s.newNode()
	s.run(stageConfirm + time.Second)
	return a
}

// newNode adds a node that has just begun.
func (s *stage) newNode() *actor {
	s.actors++
	a := &actor{stage: s, Machine: machineOf(s.Cluster, s.now), store: s.Mem.Session(), slot: fmt.Sprintf("/workers/%04d", s.actors)}
	a.store.SetFault(func(c memzk.Call) memzk.Fault {
		if a.calls == nil {
			return memzk.NoFault
		}
		return a.calls(c)
	})
	a.restart()
	s.nodes = append(s.nodes, a)
	a.round()
	return a
}

// restart begins a new process, which remembers nothing.
func (a *actor) restart() {
	a.store.Expire()
	_, a.is = New(Config{
		Store: a.store, Tenure: a, By: "node", Boot: "boot",
		Elapsed:  timeguard.NewElapsed(a.Machine),
		Parallel: 1, Address: a.address, Forward: a.pass,
	})
	a.is.saver.inBackground = func(f func()) { f() }
	a.goes = a.is.issuer.ordered.Go
	a.is.issuer.ordered.Go = func(f func()) { a.flights = append(a.flights, f) }
	a.is.issuer.ordered.Parallel = oneByOne
}

// oneByOne is Shared.Parallel for tests that run everything in one goroutine.
func oneByOne(n int, f func(k int)) {
	for k := range n {
		f(k)
	}
}

// openJournal gives a process that has just begun the journal of a directory.
func (a *actor) openJournal(dir *memDir) {
	a.cluster.Self = cmp.Or(a.cluster.Self, a.slot)
	a.dir, a.is.issuer.journal = dir, newJournal(dir)
	a.is.findJournal()
}

// restartWith begins a new process, which remembers a witness that was written into a file.
func (a *actor) restartWith(w Witness) {
	a.t.Helper()
	dir := &memDir{}
	if err := saveWitness(dir, w); err != nil {
		a.t.Fatal(err)
	}
	w, ok := loadWitness(dir)
	if !ok {
		a.t.Fatal("the witness cannot be read")
	}
	a.restart()
	a.is.recallWitness(w)
}

type memDir = memdir.Dir

func witnessIn(dir entrylog.Dir) *witnessFile {
	return &witnessFile{log: entrylog.New(dir, witnessName)}
}

func saveWitness(dir entrylog.Dir, w Witness) error { return witnessIn(dir).save(w) }

func loadWitness(dir entrylog.Dir) (Witness, bool) { return witnessIn(dir).load() }

// raise raises the incarnation, unless it is above known.
func (s *stage) raise(known int64) {
	if err := raiseIncarnation(s.Mem.Session(), known, 0); err != nil {
		s.t.Error(err)
	}
}

// noteLoss makes the node's heartbeat notice a loss of data.
func (a *actor) noteLoss() { a.raise(max(0, a.is.follower.losses.Incarnation())) }

// Slot puts the slot back if ZooKeeper has lost it, as the next heartbeat does.
func (a *actor) Slot(int64) Slot {
	if a.hold != nil {
		return a.hold()
	}
	st := a.Mem.Session()
	err := st.EnsureRoot(context.Background(), "/workers", a.slot)
	if err == nil {
		_, err = st.Set(context.Background(), a.slot, []byte("a heartbeat"), store.AnyVersion)
	}
	if err != nil {
		a.t.Error(err)
	}
	return Slot{Path: a.slot, Version: store.AnyVersion, Incarnation: anyIncarnation}
}

func (*actor) ReleasesAtStop() bool { return false }

func (a *actor) ReportLoss(known int64, found string) {
	if a.reports = append(a.reports, found); !a.deaf {
		a.raise(known)
	}
}

func (a *actor) Cluster() (ClusterInfo, bool) {
	joined := a.cluster
	joined.UUID, joined.ConfirmTime = cmp.Or(joined.UUID, "c"), cmp.Or(joined.ConfirmTime, stageConfirm)
	return joined, !a.fenced
}

func (a *actor) round() error {
	err := a.is.Round(context.Background())
	if a.is.issuer.journal != nil {
		a.is.issuer.saveJournal()
	}
	return err
}

// run lets time pass. Each node has a round every second.
func (s *stage) run(d time.Duration) {
	for end := s.now + d.Milliseconds(); s.now < end; {
		s.now = min(end, s.now+1000)
		for _, a := range s.nodes {
			_ = a.round()
		}
	}
}

// gone ends a node for good.
func (a *actor) gone() {
	for k, other := range a.nodes {
		if other == a {
			a.nodes = append(a.nodes[:k:k], a.nodes[k+1:]...)
			return
		}
	}
}

func (s *series) segment() *segment { return s.Issuing.(*segment) }

// unknown returns a series of which nothing is known.
func blank() *series {
	s := &series{shares: &shares{}, recordReadAt: longAgoNs, foundAbsentAt: longAgoNs}
	s.Series = mode.Series{Name: "order", Host: s}
	return s
}

// knowing returns a series that knows a record.
func knowing(r record.Record) *series {
	s := blank()
	s.incarnation = 1
	s.setRecord(r)
	return s
}

func (s *stage) operator() operator.Commands {
	return operator.Commands{Store: s.Mem.Session(), Clock: simClock{&s.now, func() {}}}
}

// settings returns the settings of a sequence with this ceiling.
func settings(ceiling int64) record.Settings {
	return record.Settings{Block: 32, SupplyMs: 60_000, HoldMs: 600_000, Ceiling: ceiling, HardCeiling: ceiling}
}

func plain() sequence.Map {
	return sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}
}

// create creates a sequence. The first value is 1, unless m says otherwise.
func (s *stage) create(name string, m sequence.Map, set record.Settings) record.Record {
	s.t.Helper()
	return s.creates(operator.Definition{Name: name, Map: m, Settings: set, StartGiven: true})
}

func (s *stage) creates(d operator.Definition) record.Record {
	s.t.Helper()
	r, err := s.operator().Create(context.Background(), d)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// write overwrites a record, as somebody does by hand.
func (s *stage) write(path string, data []byte) {
	s.t.Helper()
	if _, err := s.Mem.Session().Set(context.Background(), path, data, store.AnyVersion); err != nil {
		s.t.Fatal(path, err)
	}
}

// erase deletes records, as somebody does by hand.
func (s *stage) erase(paths ...string) {
	s.t.Helper()
	for _, path := range paths {
		if err := s.Mem.Session().Delete(context.Background(), path, store.AnyVersion); err != nil {
			s.t.Fatal(path, err)
		}
	}
}

// faultsOf returns the fault for the calls of which is is true.
func faultsOf(fault memzk.Fault, is func(memzk.Call) bool) func(memzk.Call) memzk.Fault {
	return func(c memzk.Call) memzk.Fault {
		if is(c) {
			return fault
		}
		return memzk.NoFault
	}
}

func (s *stage) set(name string, c operator.Change) {
	s.t.Helper()
	if _, err := s.operator().Set(context.Background(), name, c); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) setNext(name string, next int64) {
	s.t.Helper()
	s.set(name, operator.Change{Next: &next})
}

func (s *stage) remove(name string) {
	s.t.Helper()
	if _, err := s.operator().Delete(context.Background(), name); err != nil {
		s.t.Fatal(err)
	}
}

// incarnation returns that of /cluster.
func (s *stage) incarnation() int64 {
	s.t.Helper()
	return s.view("x").State.Incarnation
}

func (s *stage) view(name string) record.Snapshot {
	s.t.Helper()
	return readAll(s.t, s.Mem.Session(), name)
}

// readAll reads /cluster, /seq and the record of a name.
func readAll(t testing.TB, st store.Store, name string) record.Snapshot {
	t.Helper()
	read, err := st.GetAll(context.Background(), record.ClusterPath, record.StatePath, record.Path(name))
	if err != nil {
		t.Fatal(err)
	}
	all, err := record.ParseSnapshot(read)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// call is one request of a client.
type call struct {
	a    *actor
	w    sequence.Wait
	name string
	n    int
	// whole: the values must follow each other.
	whole bool
	runs  []worker.Run
	err   error
	woken bool
	done  bool
}

// ask sends a request for n values.
func (a *actor) ask(name string, n int, whole bool) *call {
	c := &call{a: a, name: name, n: n, whole: whole, woken: true}
	c.again()
	return c
}

// again takes the values if the request has been woken.
func (c *call) again() *call {
	for !c.done && c.woken {
		c.woken = false
		wake := func() {
			if c.woken {
				c.a.t.Error("a request is woken twice")
			}
			c.woken = true
		}
		if c.runs, c.err = c.a.is.issuer.Take(&c.w, []byte(c.name), c.n, c.whole, wake, nil); errors.Is(c.err,
			sequence.ErrPending) {
			return c
		}
		c.done = true
	}
	return c
}

// finish lets rounds pass until the request is answered.
func (c *call) finish() *call {
	for range 20 {
		if c.again(); c.done {
			return c
		}
		_ = c.a.round()
		c.a.now += 10
	}
	return c
}

// first returns the first value, and fails the test if there is none.
func (c *call) first() int64 {
	c.a.t.Helper()
	if c.finish(); !c.done || c.err != nil {
		c.a.t.Fatalf("%s %d: answered %v: %v", c.name, c.n, c.done, c.err)
	}
	return int64(c.runs[0].First)
}

// reason returns the reason of the refusal, and fails the test if there is none.
func (c *call) reason() record.Reason {
	c.a.t.Helper()
	var refusal *record.Refusal
	if c.finish(); !errors.As(c.err, &refusal) {
		c.a.t.Fatalf("%s %d: answered %v: %v, %v", c.name, c.n, c.done, c.runs, c.err)
	}
	return refusal.Reason
}
