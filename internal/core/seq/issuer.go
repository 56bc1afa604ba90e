// Package seq serves named sequences from records in ZooKeeper. A node takes blocks of positions by conditional writes,
// and issues from memory. docs/sequences.md says what is promised, and docs/design.md why it holds. Marks like (S7)
// name its rules.
//
// The invariant: no position of a sequence is issued twice. Each write that takes positions checks that all it was
// decided by is unchanged. After a loss of data, the next block skips what may have been issued since, or an operator
// says where the sequence goes on.
//
// Three types to read:
//
//   - Issuer is all sequences of a node. Take issues values, or makes a request wait. Rounds keep it: all I/O of
//     ZooKeeper happens in Rounds.Round, and at the end in Rounds.giveBack. For each series, work reads what a
//     decision needs, decides, and makes one write.
//   - series is one sequence on the node: its record as last known, and the requests that wait. Its mode issues the
//     values: segment from a stock of positions, strict after each write, ordered while this node is the owner. decide
//     returns the step that is due, without I/O.
//   - knowledge is what the node knows of losses of data, as named phases, and progress how far it has followed the
//     changes of operators, and what of that its disk has.
//
// What stands in ZooKeeper, and the decisions that need nothing else, are in package record. Package ordered says who
// may count of an ordered sequence, and package mode what rounds and modes know of each other. The commands of people
// are in package operator, which a serving node does not link.
//
// The simulation (TestSimulation) plays random histories of nodes, operators and losses of data, and checks
// that no value is issued twice.
package seq

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/pulse"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// Tenure is the holding of a worker by the node. An Issuer takes positions only while the node has one.
type Tenure interface {
	// Slot returns what each write that takes positions in a session must check, and how long the node must wait
	// before it takes any.
	Slot(session int64) Slot
	// Cluster returns the cluster that the node has joined, and false while the node holds no worker.
	Cluster() (ClusterInfo, bool)
	// Leaves reports whether the node gives its worker up when it stops, so that no later process goes on with it.
	Leaves() bool
	// ReportLoss says that ZooKeeper has lost data: found says what shows it. Unless the incarnation of the cluster
	// is above known already, the node raises it. Then it wakes the Issuer. ReportLoss must not block.
	ReportLoss(known int64, found string)
}

// Slot is the record of the node's worker.
type Slot struct {
	// Path is that of the record, "" if the node holds no worker. Version is its version at the last heartbeat that
	// ZooKeeper acknowledged.
	Path    string
	Version int32
	// Incarnation is that of /cluster as the node had read it before that heartbeat.
	Incarnation int64
	// Wait is the time until the node may take positions: until its worker is confirmed, and coordinator.Chain is long
	// enough. 0: now. An owner may renew its lease before: see allows.
	Wait time.Duration
}

// check returns the operation without which no positions are taken. It fails if ZooKeeper's data is older than the
// node's last heartbeat.
func (s Slot) check() store.Op { return store.CheckOp{Path: s.Path, Version: s.Version} }

//mutant:s11-no-wait-after-a-gap -> func (s Slot) mayTake() bool { return s.Path != "" }
func (s Slot) mayTake() bool { return s.Path != "" && s.Wait == 0 }

// allows reports whether the node may make a write now. An owner may renew its lease before it may take positions, if
// that changes nothing else (O7).
func (s Slot) allows(w mode.Write) bool {
	//mutant:o7-takes-unconfirmed -> return s.mayTake() || s.Path != "" && w.Renews
	return s.mayTake() || s.Path != "" && w.Renews && w.Block.Len() == 0 && w.Record.Owner != ""
}

// ClusterInfo has the facts about a cluster that sequences need.
type ClusterInfo struct {
	UUID string
	// ConfirmTime is the time in which a node that holds a worker notices that ZooKeeper has lost data.
	ConfirmTime time.Duration
	// Nodes is the number of nodes of the cluster that are connected, as far as the node knows.
	Nodes int
	// Self is the identity of the node. Resumed: this process has resumed the worker of its state directory, where it
	// found Journal as the last count of the journal.
	Self    string
	Resumed bool
	Journal uint64
}

// Config has the dependencies of an Issuer. Store, Tenure and Elapsed are required.
type Config struct {
	Store  store.Store
	Tenure Tenure
	// Elapsed measures how much time passes. Boot names the boot of the machine. "": it is not known.
	Elapsed *timeguard.Elapsed
	Boot    string
	// By is the node's name, for people.
	By string
	// Address is the address at which other nodes reach the line protocol of this one: HOST:PORT, "" for none.
	Address string
	// Pass asks another node for values of an ordered sequence. It returns an *ids.ReplyError if that node refuses, an
	// error that wraps ErrNotAsked if the request was certainly not sent, and another one if the outcome is not known.
	// nil: this node asks no others.
	Pass func(ctx context.Context, ask ordered.Ask) (ordered.Answer, error)
	// Nonce returns a new nonce for each write. All of a process have one record.WriterOf. nil: that of
	// record.NewNonce.
	Nonce func() string
	// Follow is the time between two reads of /seq. 0 means the default heartbeat.
	Follow time.Duration
	// Pulse puts these reads on the moments of the process's other periodic work. nil means that
	// they follow each other at their own pace.
	Pulse *pulse.Grid
	// Retry returns the pause after tries in which other nodes were faster: a random part of most. nil means that.
	Retry func(most time.Duration) time.Duration
	// Parallel is the number of sequences that Round works on at a time. 0 means 16.
	Parallel int
	// Dir is the directory in which the node keeps its knowledge of the records, and the positions that it holds, for
	// its next start. nil: none. It is used from Recall on.
	Dir   Dir
	Met   func() []coordinator.Peer // see Witness.Met; may be nil
	Trace coordinator.Trace         // may be nil
	Log   hclog.Logger              // may be nil
}

// Issuer issues the values of all sequences on a node. Any goroutine may call its exported methods at any time. They do
// no I/O: see Rounds.
type Issuer struct {
	cfg Config
	// quick is now for the requests of segment sequences. After the machine stood still, it is late for a moment.
	quick func() int64

	*shares
	series  catalog
	refused [len(record.Reasons)]atomic.Int64 // by reason, as in record.Reasons

	// quotaToldAt is the time of the last log line about a quota, ns of AtMost, longAgoNs for never.
	quotaToldAt atomic.Int64
	// progress is the progress that Rounds has published last.
	progress atomic.Pointer[progress]
}

// shares has the parts that the Issuer and all its series use. None of them is replaced.
type shares struct {
	journal  *journal      // keeps what the series hold over a restart, nil: nothing does
	owners   *ordered.Node // what ordered sequences share
	families *families
	alarms   *alarms
	trace    coordinator.Trace // may be nil
}

// New returns an Issuer that knows nothing, and the Rounds that keep it: see Rounds.Recall and Rounds.Run. It does no
// I/O.
func New(cfg Config) (*Issuer, *Rounds) {
	if cfg.Nonce == nil {
		process := store.Nonce()[:8]
		cfg.Nonce = func() string { return record.NewNonce(process) }
	}
	cfg.Follow = cmp.Or(cfg.Follow, limits.DefaultHeartbeat)
	cfg.Parallel = cmp.Or(cfg.Parallel, 16)
	if cfg.Retry == nil {
		cfg.Retry = func(most time.Duration) time.Duration { return rand.N(most) }
	}
	if cfg.Log == nil {
		cfg.Log = hclog.NewNullLogger()
	}
	i := &Issuer{
		cfg: cfg,
		//mutant:s5-at-least by TestHoldWithASlowBootClock -> quick: cfg.Elapsed.AtLeast,
		quick: cfg.Elapsed.ByMono().AtMost,
		shares: &shares{
			owners: ordered.NewNode(cfg.Pass, cfg.Address, cfg.Elapsed), families: &families{}, alarms: newAlarms(),
			trace: cfg.Trace,
		},
	}
	if cfg.Dir != nil {
		i.journal = newJournal(cfg.Dir)
	}
	i.series.shares, i.series.now = i.shares, i.now
	i.quotaToldAt.Store(longAgoNs)
	return i, newRounds(i)
}

// Take appends n values of a sequence to to, in ascending order, n >= 1. whole means that no other value of the
// sequence may lie between them. Take does no I/O. It returns a *record.Refusal, the *ids.ReplyError of an owner that
// refused, or sequence.ErrPending if the node has to fetch positions first. After ErrPending, wake is called once,
// later, and the caller must call Take again with the same w.
func (i *Issuer) Take(
	w *sequence.Wait, name []byte, n int, whole bool, wake func(), to []worker.Run,
) ([]worker.Run, error) {
	for {
		s, lane, err := i.series.serving(name)
		if err != nil {
			i.count(err)
			return to, err
		}
		now, low := i.quick(), false
		r := mode.Request{Wait: w, N: int64(n), Whole: whole, Wake: wake, Name: name, Lane: lane}
		s.Mu.Lock()
		if err = s.rejects(r, now); err == nil && s.known == nil {
			to, low, err = s.WaitOrRefuse(r, now, to)
		} else if err == nil {
			to, low, err = s.mode.Serve(r, now, i.progress.Load().knewAllAt, to)
		}
		s.Mu.Unlock()
		if err == errForgotten {
			continue
		}
		if low {
			i.alarms.wakeAt(s, mode.AtOnce)
		}
		if err != nil {
			i.count(err)
		}
		return to, err
	}
}

// Followed returns how far this node has read in its present session. Heartbeats carry it.
func (i *Issuer) Followed() coordinator.Followed {
	session, p := i.cfg.Store.SessionID(), i.progress.Load()
	f := coordinator.Followed{Last: new(p.followed(session)), Takes: i.cfg.Tenure.Slot(session).mayTake()}
	f.Compared, f.Compares = p.comparison(session)
	return f
}

// InUse reports whether the cluster has named sequences, as far as this node knows.
func (i *Issuer) InUse() bool {
	if f := i.progress.Load().compared; f != nil {
		return f.state.Changes > 0
	}
	return len(i.series.list()) > 0
}

// now returns the present time of AtMost.
func (i *Issuer) now() int64 { return i.cfg.Elapsed.AtMost() }

// count counts a refusal.
func (i *Issuer) count(err error) {
	r, ok := err.(*record.Refusal)
	for k, reason := range record.Reasons {
		if ok && r.Reason == reason {
			i.refused[k].Add(1)
		}
	}
}

// refuseAll refuses the requests that wait, of all sequences. Those that wait only for the disk wait on: see await.
func (i *Issuer) refuseAll(r *record.Refusal) {
	now := i.now()
	for _, s := range i.series.list() {
		s.change(func() {
			if len(s.Waiting) > 0 {
				s.Refuse(r, now)
			}
		})
	}
}

// catalog is the sequences that a node knows. Any goroutine may call it.
type catalog struct {
	mu     sync.RWMutex
	byName map[string]*series
	all    []*series   // in the order in which the node learned of them
	gone   mode.Totals // of the series that were removed
	// last is the series that serving has found last, nil for none. It is in byName.
	last atomic.Pointer[series]
	// lookups are those of unknown names. now is Issuer.now.
	lookups lookups
	now     func() int64
	*shares // of all series
}

// serving returns the series that serves requests for a name, of which the node may not have heard before, and the
// name's lane there. Only the name of a family has one.
func (c *catalog) serving(name []byte) (s *series, lane int, err error) {
	if f := c.families.of(name); f != nil {
		if err := sequence.CheckName(name); err != nil {
			return nil, 0, &record.Refusal{Reason: record.NoSequence, Text: err.Error()}
		}
		s, lane = c.section(f, name)
		return s, lane, nil
	}
	if s := c.last.Load(); s != nil && s.Name == string(name) {
		return s, 0, nil
	}
	c.mu.RLock()
	// The catalog has templates, too, which give no values.
	if s = c.byName[string(name)]; s != nil && !positions.IsTemplate(s.Name) {
		c.last.Store(s) // remove cannot run meanwhile
		c.mu.RUnlock()
		return s, 0, nil
	}
	c.mu.RUnlock()
	if err := sequence.CheckName(string(name)); err != nil {
		return nil, 0, &record.Refusal{Reason: record.NoSequence, Text: err.Error()}
	}
	if !c.lookups.allow(c.now()) {
		return nil, 0, tooManyNames()
	}
	return c.named(string(name)), 0, nil
}

// find returns the series of a name, nil if the node does not know it.
func (c *catalog) find(name string) *series {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byName[name]
}

// named returns the series of a name. It makes one if there is none.
func (c *catalog) named(name string) *series {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.byName[name]
	if s == nil {
		s = &series{shares: c.shares, recordReadAt: longAgoNs, foundAbsentAt: longAgoNs}
		s.Series = mode.Series{Name: name, Trace: c.trace, Sequence: s}
		if c.byName == nil {
			c.byName = make(map[string]*series)
		}
		c.byName[name] = s
		c.all = append(c.all, s)
	}
	return s
}

// counted returns all series, and what those did that were removed. Each series is in one of them: a counter that had
// one twice would fall afterwards. The caller must not change the list.
func (c *catalog) counted() ([]*series, mode.Totals) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.all[:len(c.all):len(c.all)], c.gone
}

// list returns all series. The caller must not change it.
func (c *catalog) list() []*series {
	all, _ := c.counted()
	return all
}

// remove removes the series of which dies returns true.
func (c *catalog) remove(dies func(*series) bool) {
	dead, did := make(map[*series]bool), mode.Totals{}
	for _, s := range c.list() {
		if dies(s) {
			dead[s] = true
			s.Mu.Lock() // not under mu of the catalog: no goroutine holds both
			did.Add(s.Totals)
			s.Mu.Unlock()
		}
	}
	if len(dead) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range dead {
		delete(c.byName, s.Name)
	}
	c.last.Store(nil)
	c.gone.Add(did)
	c.all = slices.DeleteFunc(slices.Clone(c.all), func(s *series) bool { return dead[s] })
}

// mark notes that the records of these names must be read. It makes a series for each, so that the node knows the
// record if ZooKeeper loses it.
func (c *catalog) mark(names []string) {
	for _, name := range names {
		c.named(name).mark(true)
	}
}

// markAll notes that all records that the node knows must be read.
func (c *catalog) markAll() {
	for _, s := range c.list() {
		s.mark(false)
	}
}

// goOnAlone lets the node issue what an earlier process held, because ZooKeeper cannot be asked.
func (c *catalog) goOnAlone() {
	for _, s := range c.list() {
		s.Mu.Lock()
		if m := s.stocked(); m != nil {
			m.unread = false
		}
		s.Mu.Unlock()
	}
}

// flaps reports whether a section was lost twice in a minute (O9).
func (c *catalog) flaps(now int64) bool {
	for _, s := range c.list() {
		s.Mu.Lock()
		m, ok := s.mode.(*ordered.Section)
		flaps := ok && m.Flaps(now)
		s.Mu.Unlock()
		if flaps {
			return true
		}
	}
	return false
}

// maxLookups is the number of unknown names that a node looks up in ZooKeeper in a second.
const maxLookups = 100

// lookups bounds how many unknown names a node looks up in ZooKeeper in a second.
type lookups struct {
	mu    sync.Mutex
	since int64 // start of the present second, ns of AtMost
	done  int
}

// allow reports whether one more name may be looked up in this second.
func (l *lookups) allow(now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now-l.since >= int64(time.Second) {
		l.since, l.done = now, 0
	}
	l.done++
	return l.done <= maxLookups
}
