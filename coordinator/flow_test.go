package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/store"
)

// The protocol tests share the lab in this file. A lab is a cluster in memory, and the test moves its clock. A member
// is a node of it. Around its Coordinator it has the least of what the node package has: a disk that survives a crash,
// bounds and holdings.

const (
	labStart   = 1_700_000_000_000 // the clock's start, Unix ms
	labW       = 24 * time.Hour
	labConfirm = 10 * time.Second
	labLease   = time.Minute
	labReserve = 3 * time.Second
)

func millis(d time.Duration) int64 { return d.Milliseconds() }

// lab is a cluster in a store.Mem, with its nodes and with the slot records that observe has seen. Times are Unix
// milliseconds.
type lab struct {
	testing.TB
	mem   *store.Mem
	admin *store.MemSession
	now   int64 // the leader's clock
	back  int64 // by how much it was set back, ms
	cl    Cluster
	nodes []*member
	gone  []*store.MemSession // of crashed processes
	trace bool
	// Copies of the data, which a test puts back.
	empty, copied *store.MemSnapshot

	seen   map[string]Slot // by path: the record seen last
	zxid   map[string]int64
	looked int64 // the zxid at the last observe
}

func newLab(t testing.TB, slots int) *lab {
	t.Helper()
	l := &lab{TB: t, now: labStart}
	l.mem = store.NewMem(func() int64 { return l.now })
	l.admin = l.mem.Session()
	l.forget()
	l.cl = Cluster{UUID: "cluster-1", Layout: "test", Slots: slots, LeaseMs: millis(labW),
		ConfirmMs: millis(labConfirm)}
	l.init(l.cl)
	return l
}

func (l *lab) init(cl Cluster) {
	l.Helper()
	found, err := CreateCluster(l.Context(), l.admin, cl, l.now)
	if err != nil || found.UUID != cl.UUID {
		l.Fatalf("made %+v, %v", found, err)
	}
}

// confirmIn recreates the cluster's record with a confirming time of d.
func (l *lab) confirmIn(d time.Duration) { l.anew(func(cl *Cluster) { cl.ConfirmMs = millis(d) }) }

// leases recreates the cluster's record with a longest lease of d. A slot stays with its holder for the grace time
// after the lease bound: a twelfth of d, at most 5 s.
func (l *lab) leases(d time.Duration) { l.anew(func(cl *Cluster) { cl.LeaseMs = millis(d) }) }

func (l *lab) anew(change func(*Cluster)) {
	l.Helper()
	l.remove(clusterPath)
	change(&l.cl)
	l.init(l.cl)
}

// forget clears what observe has seen. A test calls it after the server has lost data, because bounds may be lower
// then.
func (l *lab) forget() {
	l.seen, l.zxid, l.looked = make(map[string]Slot), make(map[string]int64), -1
}

// observe fails the test if the term of a slot has gone down since it last looked, or if a lease bound has gone down
// and its holder has not released the slot.
func (l *lab) observe() {
	latest := l.mem.Zxid()
	if latest == l.looked {
		return
	}
	l.looked = latest
	for w := range l.cl.Slots {
		p := slotPath(w)
		data, stat, err := l.mem.Peek(p)
		if err != nil || l.zxid[p] == stat.Mzxid {
			continue
		}
		was, known := l.seen[p]
		s := parseSlot(data)
		// A Lost record does not have the holder's bound, so the next bound may be lower.
		if known && !was.Lost && (s.LeaseUntil < was.LeaseUntil && !(s.Released && s.Nonce == was.Nonce) ||
			s.Term < was.Term) {
			l.Errorf("slot %d went from %+v to %+v", w, was, s)
		}
		l.seen[p], l.zxid[p] = s, stat.Mzxid
	}
}

// slot reads a slot's record. It fails the test if there is none.
func (l *lab) slot(w int) Slot {
	l.Helper()
	data, _, err := l.admin.Get(l.Context(), slotPath(w))
	if err != nil {
		l.Fatal(err)
	}
	return parseSlot(data)
}

func (l *lab) put(w int, s Slot) {
	l.Helper()
	_, err := l.admin.Set(l.Context(), slotPath(w), s.marshal(), store.AnyVersion)
	if errors.Is(err, store.ErrNoNode) {
		_, err = l.admin.Create(l.Context(), slotPath(w), s.marshal(), store.Persistent)
	}
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) remove(path string) {
	l.Helper()
	if err := l.admin.Delete(l.Context(), path, store.AnyVersion); err != nil {
		l.Fatal(err)
	}
	l.forget()
}

func (l *lab) cluster() Cluster {
	l.Helper()
	cl, err := ReadCluster(l.Context(), l.admin)
	if err != nil {
		l.Fatal(err)
	}
	return cl
}

func (l *lab) children(path string) []string {
	l.Helper()
	names, err := l.admin.Children(l.Context(), path)
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		l.Fatal(err)
	}
	return names
}

// note logs what happens in a history, if the test runs a single history of a model.
func (l *lab) note(who, what string, args ...any) {
	if l.trace {
		l.Logf("%d %s: %s", l.now-labStart, who, fmt.Sprintf(what, args...))
	}
}

func (l *lab) pass(d time.Duration) { l.now += millis(d) }

// disk is a node's state directory.
type disk struct {
	cl         Cluster
	claim      Claim
	generation uint64
	usable     bool // there is a record, not invalidated
	saves      int
	// If err is not nil, every Save returns it.
	err error
	// saving is called at the start of every Save.
	saving func(Claim)
}

// Save is part of Ledger. If the disk has a usable claim of the same node on the same slot, its reserved bound stays.
// Otherwise the new claim brings its own.
func (d *disk) Save(c Claim) (uint64, error) {
	if d.saving != nil {
		d.saving(c)
	}
	if d.err != nil {
		return 0, d.err
	}
	if d.usable && c.Node == d.claim.Node && c.Worker == d.claim.Worker {
		c.ReservedUntil = d.claim.ReservedUntil
	}
	d.generation++
	d.saves++
	d.claim, d.usable = c, true
	d.claim.Generation = d.generation
	return d.generation, nil
}

// reserve saves a claim with the reserved bound m, Unix ms.
func (d *disk) reserve(c Claim, m int64) {
	d.generation++
	d.claim = c
	d.claim.ReservedUntil, d.claim.Generation = m, d.generation
}

// issuing has the range of timestamps in which a holding of a slot may issue IDs, and the lowest and the highest
// timestamp that it has issued. Unix milliseconds.
type issuing struct {
	who    string
	worker int
	lo, hi int64 // lo <= ts < hi
	first  int64 // lowest issued, 0 for none
	issued int64 // highest issued, 0 for none
}

// member is a node.
type member struct {
	*lab
	name string
	disk *disk
	// skew is how far the node's clock is ahead of the leader's, in milliseconds.
	skew int64
	// agreed: most voters, the leader and the peers, agree with the node's clock.
	agreed bool
	judged Reading // for Report.Agreed
	ids    int     // identities and nonces so far
	hook   func(store.Call) store.Fault
	wait   time.Duration // the lease it asks for
	past   []*issuing

	patience int                // calls left until the context of a step ends
	cancel   context.CancelFunc // of the step under way

	// A crash loses the fields below.
	sess  *store.MemSession
	co    *Coordinator
	up    bool
	h     *Hold // nil: a start makes it
	claim Claim // of h
	t     *issuing
	retry bool // the stored claim is of a write whose outcome is unknown
}

func (l *lab) node(name string) *member {
	l.Helper()
	m := &member{lab: l, name: name, disk: &disk{cl: l.cl}, wait: labLease}
	l.nodes = append(l.nodes, m)
	m.boot()
	return m
}

// boot starts a new process on the same disk. The process belongs to the cluster that the disk names.
func (m *member) boot() {
	m.sess = m.mem.Session()
	m.sess.SetFault(func(c store.Call) store.Fault {
		m.observe()
		if m.patience--; m.patience == 0 {
			m.cancel()
		}
		if m.hook != nil {
			return m.hook(c)
		}
		return store.NoFault
	})
	co, err := New(Config{
		Store: m.sess, Now: m.clock, Boot: m.bootClock, Ledger: m.disk, Labels: Labels{Name: m.name},
		Nonce:  func() string { m.ids++; return fmt.Sprintf("%s/%d", m.name, m.ids) },
		Logger: hclog.NewNullLogger(),
	})
	if err != nil {
		m.Fatal(err)
	}
	co.RetryAfter = -1
	co.Join(m.disk.cl)
	m.co, m.h, m.claim, m.t = co, nil, Claim{}, nil
}

// ctx returns a context for one step. The context ends after 500 calls to the store, which are more than any step
// needs.
func (m *member) ctx() context.Context {
	if m.cancel != nil {
		m.cancel()
	}
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(m.Context())
	m.patience = 500
	return ctx
}

func (m *member) clock() int64 { return m.now + m.skew }

// bootClock goes on when the leader's clock is set back.
func (m *member) bootClock() int64 { return (m.now + m.back) * 1e6 }

// crash simulates kill -9 and boots the next process. The old session and its live lock stay until expire.
func (m *member) crash() {
	m.up, m.t = false, nil
	m.gone = append(m.gone, m.sess)
	m.boot()
}

// expire ends the sessions that crashes left behind.
func (l *lab) expire() {
	for _, s := range l.gone {
		s.Expire()
	}
	l.gone = nil
}

func (m *member) trust(Reading, []Reading) error { return nil }

// register acquires a slot as a new node does. It does not create the live lock yet.
func (m *member) register() error {
	if m.claim.Node == "" {
		m.ids++
		m.claim = Claim{Node: fmt.Sprintf("%s-%d", m.name, m.ids)}
	}
	if m.h == nil || m.h.Claim != m.claim {
		m.h = m.co.Recall(m.claim)
	}
	cl, err := ReadCluster(m.ctx(), m.co.Store)
	if err != nil {
		return err
	}
	confirm, err := m.h.Register(m.ctx(), cl, m.wait, m.trust)
	if err != nil {
		m.claim = m.h.Held()
		m.retry = m.disk.usable && m.disk.claim.Node == m.claim.Node && m.disk.claim.PendingNonce != ""
		return err
	}
	m.granted(confirm)
	return nil
}

// recall makes the hold of what is on the disk.
func (m *member) recall() *Hold {
	if m.h == nil {
		m.h = m.co.Recall(m.disk.claim)
	}
	return m.h
}

func (m *member) resume() error {
	confirm, err := m.recall().Resume(m.ctx(), m.wait, m.trust)
	if err != nil {
		return err
	}
	m.granted(confirm)
	return nil
}

func (m *member) granted(confirm time.Duration) {
	m.note(m.name, "granted, confirms for %s", confirm)
	if m.agreed {
		m.judged = m.co.reading
	}
	m.up, m.retry = true, false
	m.hold()
}

func (m *member) hold() {
	c := m.h.Held()
	m.claim = c
	m.t = &issuing{who: m.name, worker: c.Worker, lo: c.Floor, hi: c.Floor}
	m.past = append(m.past, m.t)
	m.extend()
}

// startAlone starts the node from its disk, without ZooKeeper.
func (m *member) startAlone() {
	m.note(m.name, "starts alone with %+v", m.disk.claim)
	m.up = true
	m.recall().GoAlone(max(m.disk.claim.ReservedUntil, m.disk.claim.Floor), m.disk.generation)
	m.hold()
}

// start starts the node: it resumes, starts from its disk alone, or registers. If start returns an error, the node
// stays down.
func (m *member) start() (err error) {
	defer func() { m.note(m.name, "start: %v", err) }()
	if err := m.co.Settle(m.ctx()); err != nil {
		return err
	}
	cl, err := ReadCluster(m.ctx(), m.sess)
	if !m.disk.usable && err == nil {
		m.disk.cl = cl
		m.co.Join(cl)
	}
	if m.disk.usable {
		claim := m.disk.claim
		cached := claim.Confirmed && m.clock() < claim.LeaseUntil
		gone := errors.Is(err, ErrNoCluster) ||
			err == nil && JudgeCluster(&cl, m.disk.cl.UUID, m.disk.claim.Incarnation) == FoundLost
		if cached && gone {
			m.startAlone()
			return nil
		}
		err = m.resume()
		var no *NotOursError
		switch {
		case err == nil:
			return nil
		case cached && errors.Is(err, store.ErrUnreachable), cached && errors.As(err, &no) && no.Lost:
			m.startAlone()
			return nil
		case !errors.As(err, &no):
			return err
		}
		m.disk.usable, m.claim, m.h = false, Claim{}, nil
		if claim.Nonce == "" {
			m.claim = claim // never granted: keep its identity
		}
	}
	return m.register()
}

// extend raises the reserved bound on the disk, and then the range of the holding.
func (m *member) extend() {
	c := &m.claim
	if m.up && c.Confirmed {
		m.disk.reserve(*c, max(m.disk.claim.ReservedUntil, min(m.clock()+millis(labReserve), c.LeaseUntil)))
		m.t.hi = max(m.t.hi, min(m.disk.claim.ReservedUntil, c.LeaseUntil))
	}
}

// confirmsIn returns the time until the slot may be confirmed.
func (m *member) confirmsIn() time.Duration { return time.Duration(m.h.ConfirmAt() - m.bootClock()) }

// issue issues an ID at the node's present time if the range of its holding allows that, and reports whether it did.
func (m *member) issue() bool {
	ts := m.clock()
	if !m.up || !m.claim.Confirmed || ts < m.t.lo || ts >= m.t.hi || ts <= m.t.issued {
		return false
	}
	if m.t.first == 0 {
		m.t.first = ts
	}
	m.t.issued = ts
	return true
}

func (m *member) report() Report {
	return Report{Lease: m.wait, Generation: m.disk.generation, State: "testing", Agreed: m.judged}
}

// beat sends a heartbeat and applies its result to the node. It also creates the live lock if there is none of this
// session.
func (m *member) beat() (Beat, error) {
	r := m.report()
	b, err := m.h.Heartbeat(m.ctx(), r)
	m.note(m.name, "beat %+v: %+v, %v", r, b, err)
	var fenced *FencedError
	switch {
	case errors.As(err, &fenced):
		m.up, m.t, m.h, m.claim, m.disk.usable = false, nil, nil, Claim{}, false
		return b, err
	case err != nil:
		m.claim = m.h.Held()
		return b, err
	}
	if b.Floor < m.claim.Floor {
		m.Errorf("%s: its floor went from %d to %d", m.name, m.claim.Floor, b.Floor)
	}
	if b.Floor > m.t.lo { // the lease had run out
		m.t = &issuing{who: m.name, worker: m.claim.Worker, lo: b.Floor, hi: b.Floor, issued: m.t.issued}
		m.past = append(m.past, m.t)
	}
	if err := m.h.Accept(b, 0); err != nil {
		return b, err
	}
	m.claim = m.h.Held()
	m.disk.cl.HighestSlot = m.co.HighestSlot()
	if m.agreed {
		m.judged = b.Clock
	}
	m.extend()
	if b.Shown {
		return b, nil
	}
	return b, m.h.Show(m.ctx())
}

// end returns the first timestamp that the holding has not reached, Unix ms.
func (m *member) end() int64 { return max(m.t.lo, m.t.issued+1) }

// halt stops the node cleanly. The node keeps the slot.
func (m *member) halt() error {
	m.t.hi = m.end()
	m.disk.reserve(m.claim, m.t.hi)
	err := m.h.Stop(m.ctx(), m.t.hi, m.disk.generation)
	_ = m.sess.Close()
	m.crash()
	return err
}

// leave stops the node and releases the slot.
func (m *member) leave() error {
	m.t.hi = m.end()
	m.disk.usable = false
	m.disk.generation++
	err := m.h.Release(m.ctx(), m.t.hi)
	_ = m.sess.Close()
	m.crash()
	return err
}

// The helpers below fail the test if a step fails.

func (m *member) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatalf("%s: %v", m.name, err)
	}
}

func (m *member) mustBeat() Beat {
	m.Helper()
	b, err := m.beat()
	m.must(err)
	return b
}

// serving registers a node and confirms it.
func (l *lab) serving(name string) *member {
	l.Helper()
	m := l.node(name)
	m.must(m.register())
	m.confirm()
	return m
}

// succeededBy cuts the node off until its lease bound and the grace time have passed by the leader's clock. Then it
// returns a new node, which serves on the slot.
func (m *member) succeededBy(name string) *member {
	m.Helper()
	m.sess.Partition()
	m.sess.Expire()
	m.now = m.claim.LeaseUntil + m.cluster().graceMs()
	return m.serving(name)
}

func (m *member) confirm() {
	m.Helper()
	m.must(m.h.Show(m.ctx()))
	m.now = max(m.now, m.h.ConfirmAt()/1e6-m.back)
	if b := m.mustBeat(); !b.Confirmed {
		m.Fatalf("%s did not confirm: %+v", m.name, b)
	}
	if m.now < m.t.lo-m.skew { // what the process before has reserved
		m.now = m.t.lo - m.skew
		m.mustBeat()
	}
	if !m.issue() {
		m.Fatalf("%s issues nothing at %d: %+v, %+v", m.name, m.clock(), m.claim, m.t)
	}
}

// serve lets all running nodes send heartbeats and issue IDs for the time d.
func (l *lab) serve(d time.Duration) {
	l.Helper()
	for end := l.now + millis(d); l.now < end; {
		l.pass(min(DefaultHeartbeat, time.Duration(end-l.now)*time.Millisecond))
		for _, m := range l.nodes {
			if m.up {
				m.mustBeat()
				m.issue()
			}
		}
	}
}

// disjoint checks that the ranges of two holdings of the same slot do not overlap.
func (l *lab) disjoint() {
	l.Helper()
	l.observe()
	var all []*issuing
	for _, m := range l.nodes {
		all = append(all, m.past...)
	}
	for i, a := range all {
		for _, b := range all[:i] {
			if a.worker == b.worker && max(a.lo, b.lo) < min(a.hi, b.hi) {
				l.Errorf("worker %d: %s has [%d, %d) and %s has [%d, %d)", a.worker, a.who, a.lo, a.hi, b.who, b.lo,
					b.hi)
			}
		}
	}
}

func wantFenced(t testing.TB, err error) {
	t.Helper()
	var fenced *FencedError
	if !errors.As(err, &fenced) {
		t.Errorf("got %v, want a FencedError", err)
	}
}

func wantErrAs[E error](t testing.TB, err error) (e E) {
	t.Helper()
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a %T", err, e)
	}
	return e
}

// faulty returns a hook for calls that match. It lets the first skip of them through and makes the next count of them
// fail with f.
func faulty(f store.Fault, skip, count int, match func(store.Call) bool) func(store.Call) store.Fault {
	n := 0
	return func(c store.Call) store.Fault {
		if !match(c) {
			return store.NoFault
		}
		n++
		if n > skip && n <= skip+count {
			return f
		}
		return store.NoFault
	}
}

// touching matches calls of the kind op that name the path, or any kind if op is empty. A multi names the paths of all
// its operations.
func touching(op, path string) func(store.Call) bool {
	return func(c store.Call) bool {
		return cmp.Or(op, c.Op) == c.Op && c.Touches(path)
	}
}

var errClock = errors.New("the clock is wrong")

func refuseClock(Reading, []Reading) error { return errClock }
