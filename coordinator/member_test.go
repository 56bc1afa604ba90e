package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/timeguard"
)

// member is a node.
type member struct {
	*lab
	*memcluster.Machine
	name string
	disk *disk
	// agreed: most voters, the leader and the peers, agree with the node's clock.
	agreed bool
	judged Reading // for Report.Agreed
	ids    int     // identities and nonces so far
	hook   func(memzk.Call) memzk.Fault
	wait   time.Duration // the lease it asks for
	past   []*issuing

	patience int                // calls left until the context of a step ends
	cancel   context.CancelFunc // of the step under way

	// A crash loses the fields below.
	sess  *memzk.Session
	co    *Coordinator
	up    bool
	h     *holderState // what co holds; nil: a start makes it
	claim Claim        // of h
	t     *issuing
}

func (l *lab) node(name string) *member {
	l.Helper()
	m := &member{lab: l, Machine: l.Machine(), name: name, disk: &disk{cl: l.cl}, wait: labLease}
	l.nodes = append(l.nodes, m)
	m.boot()
	return m
}

// boot starts a new process on the same disk. The process belongs to the cluster that the disk names.
func (m *member) boot() {
	m.sess = m.Mem.Session()
	m.sess.SetFault(func(c memzk.Call) memzk.Fault {
		m.observe()
		if m.patience--; m.patience == 0 {
			m.cancel()
		}
		if m.hook != nil {
			return m.hook(c)
		}
		return memzk.NoFault
	})
	co := New(Config{
		Store: m.sess, Now: m.clock, Elapsed: timeguard.NewElapsed(m.Machine), Ledger: m.disk,
		Labels: Labels{Name: m.name, Address: m.name + ":7609"},
		Nonce:  func() string { m.ids++; return fmt.Sprintf("%s/%d", m.name, m.ids) },
		Logger: hclog.NewNullLogger(),
	})
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

// clock reads the node's clock, Unix ms.
func (m *member) clock() int64 { return m.Wall() / 1e6 }

// crash simulates kill -9 and boots the next process. The old session and its live lock stay until expire.
func (m *member) crash() {
	m.up, m.t = false, nil
	m.gone = append(m.gone, m.sess)
	m.boot()
}

func (m *member) trust(Reading, []Reading) error { return nil }

// register acquires a slot as a new node does. It does not create the live lock yet.
func (m *member) register() error {
	if m.claim.Node == "" {
		m.ids++
		m.claim = Claim{Owner: Owner{Node: fmt.Sprintf("%s-%d", m.name, m.ids)}}
	}
	if m.h == nil || m.h.Claim != m.claim {
		m.co.Recall(m.claim)
		m.h = m.co.holder
	}
	cl, err := ReadCluster(m.ctx(), m.co.Store)
	if err != nil {
		return err
	}
	_, confirm, err := m.co.Register(m.ctx(), cl, m.wait, m.trust)
	if err != nil {
		m.claim = m.co.Claim()
		return err
	}
	m.granted(confirm)
	return nil
}

// recall makes the hold of what is on the disk.
func (m *member) recall() {
	if m.h == nil {
		m.co.Recall(m.disk.claim)
		m.h = m.co.holder
	}
}

func (m *member) resume() error {
	m.recall()
	confirm, err := m.co.Resume(m.ctx(), m.wait, m.trust)
	if err != nil {
		return err
	}
	m.granted(confirm)
	return nil
}

func (m *member) granted(confirm time.Duration) {
	if m.agreed {
		m.judged = m.co.reading
	}
	m.up = true
	m.hold()
}

func (m *member) hold() {
	c := m.co.Claim()
	m.claim = c
	m.t = &issuing{who: m.name, worker: c.Worker, lo: c.Floor, hi: c.Floor}
	m.past = append(m.past, m.t)
	m.extend()
}

// startAlone starts the node from its disk, without ZooKeeper.
func (m *member) startAlone() {
	m.up = true
	m.recall()
	m.co.GoAlone(max(m.disk.claim.ReservedUntil, m.disk.claim.Floor), m.disk.generation)
	m.hold()
}

// start starts the node: it resumes, starts from its disk alone, or registers. If start returns an error, the node
// stays down.
func (m *member) start() error {
	if err := m.co.AnnounceDue(m.ctx()); err != nil {
		return err
	}
	cl, err := ReadCluster(m.ctx(), m.sess)
	if !m.disk.usable && err == nil {
		m.disk.cl = cl
		m.co.Join(cl)
	}
	if m.disk.usable {
		claim := m.disk.claim
		cached := claim.EverConfirmed && m.clock() < claim.LeaseUntil
		gone := errors.Is(err, ErrNoCluster) ||
			err == nil && ClusterFinding(&cl, m.disk.cl.UUID, m.disk.claim.Incarnation) == FoundLost
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

// confirmsIn returns the time until the slot may be confirmed.
func (m *member) confirmsIn() time.Duration { return time.Duration(m.co.ConfirmAt() - m.Boot()) }

func (m *member) report() Report {
	return Report{Lease: m.wait, Generation: m.disk.generation, Phase: "testing", Agreed: m.judged}
}

// beat sends a heartbeat and applies its result to the node. It also creates the live lock if there is none of this
// session.
func (m *member) beat() (Beat, error) {
	r := m.report()
	b, err := m.co.Heartbeat(m.ctx(), r)
	var fenced *FencedError
	switch {
	case errors.As(err, &fenced):
		m.up, m.t, m.h, m.claim, m.disk.usable = false, nil, nil, Claim{}, false
		return b, err
	case err != nil:
		m.claim = m.co.Claim()
		return b, err
	}
	if b.Floor < m.claim.Floor {
		m.Errorf("%s: its floor went from %d to %d", m.name, m.claim.Floor, b.Floor)
	}
	if b.Floor > m.t.lo { // the lease had run out
		m.t = &issuing{who: m.name, worker: m.claim.Worker, lo: b.Floor, hi: b.Floor, issued: m.t.issued}
		m.past = append(m.past, m.t)
	}
	if err := m.co.Accept(b, 0); err != nil {
		return b, err
	}
	m.claim = m.co.Claim()
	m.disk.cl.HighestSlot = m.co.mine.HighestSlot
	if m.agreed {
		m.judged = b.Clock
	}
	m.extend()
	return b, m.co.EnsureLiveLock(m.ctx())
}

// end returns the first timestamp that the tenure has not reached, Unix ms.
func (m *member) end() int64 { return max(m.t.lo, m.t.issued+1) }

// halt stops the node cleanly. The node keeps the slot.
func (m *member) halt() error {
	m.t.hi = m.end()
	m.disk.reserve(m.claim, m.t.hi)
	err := m.co.Stop(m.ctx(), m.t.hi, m.disk.generation)
	_ = m.sess.Close()
	m.crash()
	return err
}

// leave stops the node and releases the slot.
func (m *member) leave() error {
	m.t.hi = m.end()
	m.disk.usable = false
	m.disk.generation++
	err := m.co.Release(m.ctx(), m.t.hi)
	_ = m.sess.Close()
	m.crash()
	return err
}

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
	m.must(m.co.EnsureLiveLock(m.ctx()))
	m.now = max(m.now, m.co.ConfirmAt()/1e6)
	if b := m.mustBeat(); !b.Confirmed {
		m.Fatalf("%s did not confirm: %+v", m.name, b)
	}
	if early := m.t.lo - m.clock(); early > 0 { // what the process before has reserved
		m.now += early
		m.mustBeat()
	}
	if !m.issue() {
		m.Fatalf("%s issues nothing at %d: %+v, %+v", m.name, m.clock(), m.claim, m.t)
	}
}
