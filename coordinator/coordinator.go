package coordinator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/zkstore"
)

// DefaultHeartbeat is how often an owner reports to ZooKeeper.
const DefaultHeartbeat = limits.DefaultHeartbeat

// Ledger keeps a claim on the local disk.
type Ledger interface {
	// Save makes the claim durable before it returns nil, and returns the
	// generation of the local record.
	Save(Claim) (generation uint64, err error)
}

// Reading compares a clock with that of ZooKeeper's leader: a write began when
// the clock read Sent, was acknowledged at Acked, and the leader stamped it
// with Stamp. Unix milliseconds.
type Reading struct{ Sent, Acked, Stamp int64 }

// ClockCheck says whether this node's clock may be used, given its own reading
// and those of peers under the same leader. An error refuses it.
type ClockCheck func(own Reading, peers []Reading) error

// Config is what a Coordinator is made of.
type Config struct {
	Store zkstore.Store
	// Now is the issuing clock in Unix milliseconds.
	Now func() int64
	// Ledger stores claims before the writes that carry them.
	Ledger Ledger
	// Labels are shown to people.
	Labels Labels
	// Process is the same for nodes that share a process, and so a clock: they
	// have one vote together. Siblings are the slots that they hold. nil: this
	// one shares with none.
	Process  func() string
	Siblings func() []int
	// Interval is how often the node will report; 0 means DefaultHeartbeat.
	Interval time.Duration
	// Nonce makes the fresh number of each grant; nil means 64 random bits.
	Nonce func() string
	// RetryAfter is the pause after a call that was not answered; 0 means
	// 100 ms, negative none.
	RetryAfter time.Duration
	// Logger may be nil.
	Logger hclog.Logger
}

// Coordinator is one node's side of the protocol. Its methods are steps: each
// returns by its context's deadline and starts nothing. One goroutine at a
// time may use it.
type Coordinator struct {
	Config
	// mine is the cluster this node belongs to, set by Join.
	mine Cluster
	// unsure is a node that may have a ticket that was not acknowledged.
	unsure string
	// held is what this process knows of the slot that it holds, or held last.
	holding holding
	// reading is our clock against the leader's when that was last read; zero if it
	// never was.
	reading Reading
	// rtt is how long the last heartbeat's write took, in milliseconds.
	rtt int64
	// latest is the stat of our own last write, a ticket's or a slot's.
	latest zkstore.Stat
	// fenced is the slot lost to another whose live lock may still be ours, -1
	// when there is none.
	fenced int
	roster roster
	// used is the highest slot known to have been granted: what a cluster
	// record that was lost is made again with.
	used int
}

// New validates the configuration.
func New(cfg Config) (*Coordinator, error) {
	if cfg.Store == nil || cfg.Now == nil || cfg.Ledger == nil {
		return nil, errors.New("coordinator: a store, a clock and a ledger are required")
	}
	if cfg.Interval < 0 {
		return nil, fmt.Errorf("coordinator: a heartbeat every %s", cfg.Interval)
	}
	if cfg.Interval == 0 {
		cfg.Interval = DefaultHeartbeat
	}
	if cfg.RetryAfter == 0 {
		cfg.RetryAfter = 100 * time.Millisecond
	}
	if cfg.Nonce == nil {
		cfg.Nonce = randomNonce
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	return &Coordinator{Config: cfg, fenced: -1, used: -1}, nil
}

func randomNonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}

// Join says which cluster this node belongs to: what is found in its place is
// judged against it, and it is what an owner makes again when ZooKeeper has
// lost it.
func (c *Coordinator) Join(cl Cluster) {
	if cl.UUID != c.mine.UUID {
		c.used = -1
	}
	c.mine = cl
	c.remember(cl.Used)
}

// joined reads the cluster record and insists that it is ours.
func (c *Coordinator) joined(ctx context.Context) (Cluster, error) {
	cl, err := ReadCluster(ctx, c.Store)
	if err != nil {
		return Cluster{}, err
	}
	if cl.UUID != c.mine.UUID {
		return Cluster{}, &OtherClusterError{Found: cl.UUID, Ours: c.mine.UUID}
	}
	c.remember(cl.Used)
	return cl, nil
}

// view is what ZooKeeper has of the cluster and of one slot.
type view struct {
	cl     *Cluster // nil: there is none
	clStat zkstore.Stat
	slot   *Slot // nil: there is none
	stat   zkstore.Stat
	lock   zkstore.Record // the slot's live lock
}

// look reads it, in one round trip.
func (c *Coordinator) readView(ctx context.Context, worker int) (v view, err error) {
	records, err := c.Store.GetAll(ctx, clusterPath, slotPath(worker), lockPath(worker))
	if err != nil {
		return view{}, err
	}
	if r := records[0]; r.Found {
		cl, err := parseCluster(r.Data)
		if err != nil {
			return view{}, err
		}
		v.cl, v.clStat = &cl, r.Stat
	}
	if r := records[1]; r.Found {
		slot := parseSlot(r.Data)
		v.slot, v.stat = &slot, r.Stat
	}
	v.lock = records[2]
	return v, nil
}

// slot reads a worker's record; nil when there is none.
func (c *Coordinator) slot(ctx context.Context, worker int) (*Slot, zkstore.Stat, error) {
	data, stat, err := c.Store.Get(ctx, slotPath(worker))
	if errors.Is(err, zkstore.ErrNoNode) {
		return nil, zkstore.Stat{}, nil
	}
	if err != nil {
		return nil, zkstore.Stat{}, err
	}
	s := parseSlot(data)
	return &s, stat, nil
}

// remember keeps the highest slot seen, in case /cluster is lost.
func (c *Coordinator) remember(used int) { c.used = max(c.used, used) }

// Used is the highest slot known to have been granted.
func (c *Coordinator) Used() int { return c.used }

// nextGrant makes the next grant of a slot, with a new term and nonce, and saves it as
// pending before anything is written to ZooKeeper. It returns the claim and the record to
// write in place of old. That record is not settled.
func (c *Coordinator) nextGrant(claim Claim, cl Cluster, old Slot, lease time.Duration) (Claim, Slot, error) {
	claim.PendingTerm, claim.PendingNonce = max(claim.Term, old.Term)+1, c.Nonce()
	gen, err := c.Ledger.Save(claim)
	if err != nil {
		return claim, Slot{}, fmt.Errorf("coordinator: storing the claim before it is written: %w", err)
	}
	claim.Generation = gen
	c.holding.granted = append(c.holding.granted, claim.PendingNonce)
	slot := claim.in(cl).record(c.gather(Report{}), claim.PendingTerm, claim.PendingNonce, old, lease)
	slot.State = "settling"
	return claim, slot, nil
}

// confirmed is the claim once the write that carries it is acknowledged or
// found.
func (c Claim) confirmed() Claim {
	c.Term, c.Nonce = c.PendingTerm, c.PendingNonce
	c.PendingTerm, c.PendingNonce = 0, ""
	return c
}

// adopt takes a claim for what a record that carries it says: a pending grant
// whose acknowledgement was lost has been made.
func (c Claim) adopt(found Slot) Claim {
	if c.PendingNonce != "" && found.Nonce == c.PendingNonce {
		return c.confirmed()
	}
	return c
}

// setReading remembers our last write, which began when our clock read sent and has just
// been acknowledged, and returns our clock against the leader's by it.
func (c *Coordinator) setReading(sent int64, written zkstore.Stat) Reading {
	c.latest, c.reading = written, Reading{Sent: sent, Acked: c.Now(), Stamp: written.Mtime}
	return c.reading
}

// setHolding begins the holding of a pending grant whose write is acknowledged, and
// returns its claim. version is the slot's since then.
func (c *Coordinator) setHolding(claim Claim, cl Cluster, version int32) Claim {
	c.holding = holding{Claim: claim.confirmed().in(cl), granted: c.holding.granted, written: true, version: version}
	return c.holding.Claim
}

// setCompared remembers that the leader's time of that write was compared with the bound
// before it. The write made bound, in an epoch of the leader.
func (c *Coordinator) setCompared(bound, epoch int64) {
	c.holding.compared, c.holding.comparedBound, c.holding.comparedEpoch = true, bound, epoch
}
