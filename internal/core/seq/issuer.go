// Package seq serves named sequences from records in ZooKeeper. A node takes blocks of positions by conditional writes,
// and issues from memory. docs/sequences.md says what is promised, and docs/design.md why it holds. Marks like (S7)
// name its rules.
//
// The invariant: no position of a sequence is issued twice. Each write that takes positions checks that all it was
// decided by is unchanged. After a loss of data, the next block skips what may have been issued since, or an operator
// says where the sequence goes on.
//
// Four types to read:
//
//   - Issuer is all sequences of a node. Take issues values, or makes a request wait. Rounds keep it: all I/O of
//     ZooKeeper happens in Rounds.Round, and at the end in Rounds.giveBack. For each series, roundIO.work reads what
//     a decision needs, decides, and makes one write.
//   - series is one sequence on the node: its record as last known, and the requests that wait. Its mode issues the
//     values: segment from a stock of positions, strict after each write, ordered while this node is the owner. decide
//     returns the step that is due, without I/O.
//   - losses.State says in which phase the node is after a loss of ZooKeeper's data.
//   - progress says which changes of operators the node has followed, and which of them it has saved on its disk.
//
// The files of this package, by the idea that they belong to:
//
//	requests         issuer, catalog, series, segment, families, refusals, report
//	rounds           rounds, agenda, worklist, work, work_read, step, work_write, template, map_key
//	pace of writes   refresh_pace, renew
//	files on disk    journal, journal_resume, segment_bound, witness
//	losses of data   follower, progress, putback, journal_loss
//	end and worker   tenure, node_list, leave, stop
//
// Package record has the records in ZooKeeper, and decides what can be decided by them alone. Package losses decides
// what a node does after a loss of data. Package ordered decides which node may issue an ordered sequence. Package
// strict answers requests after each write. Package mode has the types that rounds and modes share. The commands of
// people are in package operator, which the root package does not link.
//
// The simulation (TestSimulation) plays random histories of nodes, operators and losses of data, and checks
// that no value is issued twice.
package seq

import (
	"cmp"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/pulse"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

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
	// Forward asks another node for values of an ordered sequence. nil: this node asks no others.
	Forward ordered.Forwarder
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
	Dir   entrylog.Dir
	Met   func() []coordinator.Peer // see Witness.Met; may be nil
	Trace coordinator.Trace         // may be nil
	Log   hclog.Logger              // may be nil
}

// Issuer issues the values of all sequences on a node. Any goroutine may call its exported methods at any time. They do
// no I/O, except DirError: see Rounds.
type Issuer struct {
	cfg Config
	// quick is now for the requests of segment sequences, and of those whose record is not known. After the machine
	// stood still, it is late for a moment.
	quick func() int64

	*shares
	series  catalog
	refused [len(record.Reasons)]atomic.Int64 // by reason, as in record.Reasons

	// quotaToldAt is the time of the last log line about a quota, ns of AtMost, longAgoNs for never.
	quotaToldAt atomic.Int64
	// dirFailure is the last write to the directory that failed, nil if none has.
	dirFailure atomic.Pointer[dirFailure]
	// progress is the progress that Rounds has published last.
	progress atomic.Pointer[progress]
}

// shares has the parts that the Issuer and all its series use. None of them is replaced.
type shares struct {
	journal  *journal        // keeps what the series hold over a restart, nil: nothing does
	ordered  *ordered.Shared // what ordered sequences share
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
			ordered: ordered.NewShared(cfg.Forward, cfg.Address, cfg.Elapsed), families: &families{}, alarms: newAlarms(),
			trace: cfg.Trace,
		},
	}
	if cfg.Dir != nil {
		i.journal = newJournal(cfg.Dir)
	}
	i.series.shares, i.series.now = i.shares, i.now
	i.quotaToldAt.Store(longAgoNs)
	i.progress.Store(new(noProgress()))
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
		now, needsRound := i.quick(), false
		r := mode.Request{Wait: w, N: int64(n), Whole: whole, Wake: wake, Name: name, Lane: lane}
		s.Mu.Lock()
		if err = s.rejects(r, now); err == nil && s.Known == nil {
			to, needsRound, err = s.WaitOrRefuse(r, now, to)
		} else if err == nil {
			to, needsRound, err = s.Issuing.Serve(r, now, i.progress.Load().knewAllAt, to)
		}
		s.Mu.Unlock()
		if err == errForgotten {
			i.series.replace(s)
			continue
		}
		if needsRound {
			i.alarms.wakeAt(s, mode.AtOnce)
		}
		if err != nil {
			i.count(err)
		}
		return to, err
	}
}

// Followed returns up to which change the node's witness file is complete in this session, and whether the node has
// compared its records. Heartbeats carry it.
func (i *Issuer) Followed() coordinator.Followed {
	session, p := i.cfg.Store.SessionID(), i.progress.Load()
	f := coordinator.Followed{Last: new(p.followed(session)), Takes: i.cfg.Tenure.Slot(session).isConfirmed()}
	f.Compared, f.Compares = p.comparison(session)
	return f
}

// InUse reports whether the cluster has, or has had, named sequences. Before the node has compared its records, any
// name that was asked for counts.
func (i *Issuer) InUse() bool {
	if f := i.progress.Load().compared; f != nil {
		return f.state.Changes > 0
	}
	return len(i.series.list()) > 0
}

// Wake makes Run call Round soon. It never blocks.
func (i *Issuer) Wake() { i.alarms.wake() }

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
