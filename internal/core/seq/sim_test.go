package seq

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// history is one course of events, drawn from a seed.
type history struct {
	seed uint64
	rng  *rand.Rand
	*memcluster.Cluster
	now    int64 // ms since the start
	nodes  []*simNode
	names  []string
	copies []simCopy
	// heard is the node that must notice the last loss, until the time noticeBy.
	heard    *simNode
	noticeBy int64
	log      []string
	wrong    string // the first violation, with the check's name first

	given              map[string]bool // "name value"
	takings            map[string][]simTaking
	intended           map[string]simTaking // by nonce
	highest            map[string]int64     // value that was issued
	strict             map[string]*simStrict
	late               []*simLate // requests that wait
	issued             int
	lostAt             []int64 // when data were lost, ms
	inside             bool    // in interleave
	confirm, heartbeat time.Duration
	mute               *simNode // sends no heartbeats
	lazy               *simNode // has no rounds until it must notice a loss of data
	right              trusted
	staged             bool                    // in a scenario: no other losses
	keyed              sequence.Map            // the salt or the scatter of simKeyed
	lives              []sequence.Values       // of simKeyed, each with its key
	hold               int64                   // ms
	identities         int                     // identities of nodes so far
	lease              int64                   // of ordered sequences, ms
	purged             map[string]bool         // names that were forgotten, and may have another life
	drift              bool                    // the clocks of machines run apart
	faulty             int                     // one call in faulty is lost, twice that and so on
	base               string                  // where the real directories are. "": the directories are in memory
	paths              int                     // that were made in base
	tell               func(*simNode, *Config) // if not nil, it makes a node one that tells what it does
	orphansUntil       int64                   // when the sessions from before the last loss of data end, ms; 0: they have
}

type simCopy struct {
	at   int64
	data *memzk.Snapshot
}

// simTaking is a block of n positions that was taken at a time. extra is the number of positions that the ceiling does
// not count. over is the writer of the record that the write replaced, "" for none that counts.
type simTaking struct {
	at, n, ceiling, extra int64
	over                  string
}

const simEpoch = int64(1_800_000_000_000)

func newHistory(seed uint64) *history {
	h := &history{seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), given: map[string]bool{},
		takings: map[string][]simTaking{}, intended: map[string]simTaking{}, highest: map[string]int64{},
		strict: map[string]*simStrict{}, names: []string{"s0"}, purged: map[string]bool{}}
	h.confirm, h.heartbeat = 12*time.Second, 3*time.Second
	if h.rng.IntN(2) == 0 {
		h.confirm, h.heartbeat = 2*time.Second, 500*time.Millisecond
	}
	h.hold = []int64{600_000, 20_000, 20_000, record.Forever.Milliseconds()}[h.rng.IntN(4)]
	h.faulty = []int{20, 60, 1000}[h.rng.IntN(3)]
	h.right = []trusted{bootRight, bootRight, wallRight, leaderRight}[h.rng.IntN(4)]
	h.lease, h.drift = []int64{1000, 3000, 6000}[h.rng.IntN(3)], h.rng.IntN(2) == 0
	if seed%4 == 2 {
		h.makeBase()
	}
	h.note("the %s clocks are right", h.right)
	h.Cluster = clusterAt(&h.now)
	h.Mem.SetEpoch(1)
	admin, nodes := h.Mem.Session(), 2+h.rng.IntN(3)
	createCluster(admin, nodes)
	for range nodes {
		h.addNode()
	}
	h.run(60_000)
	h.names = []string{"s0", "s1"}[:1+h.rng.IntN(2)]
	if h.rng.IntN(2) == 0 {
		h.names = append(h.names, "x0")
		h.strict["x0"] = &simStrict{}
	}
	if h.rng.IntN(2) == 0 {
		h.names = append(h.names, simOrdered)
	}
	for _, name := range h.names {
		h.create(admin, name)
	}
	if h.rng.IntN(3) == 0 {
		h.createFamily(h.operator(admin), 2, 1)
		h.names = append(h.names, simFamilyNames...)
	}
	if h.rng.IntN(3) == 0 {
		h.createTemplate(admin)
	}
	if h.rng.IntN(3) == 0 {
		h.createKeyed(admin)
	}
	return h
}

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf("%9.3f ", float64(h.now)/1000)+fmt.Sprintf(format, args...))
}

// ask asks a node for values, and checks them.
func (h *history) ask(n *simNode, name string, count int, whole bool) {
	if h.now < n.pauseTill {
		return
	}
	if isOrdered(name) {
		h.askOrdered(n, name, count, whole)
		return
	}
	var w sequence.Wait
	before := h.highest[name]
	var runs []worker.Run
	for range 3 {
		var err error
		runs, err = n.is.issuer.Take(&w, []byte(name), count, whole, func() {}, nil)
		if !errors.Is(err, sequence.ErrPending) {
			if err != nil {
				runs = nil
			}
			break
		}
		n.round()
	}
	if len(runs) == 0 {
		return
	}
	if whole && len(runs) != 1 {
		h.violated("whole", "node %d: RANGE %s %d: %v", n.id, name, count, runs)
	}
	h.check(n, name, runs, count, before)
}

// check checks the values that a node has answered. before is the highest value that any node had answered when the
// request was sent.
func (h *history) check(n *simNode, name string, runs []worker.Run, count int, before int64) {
	h.note("node %d issues %s %v", n.id, name, h.shown(name, runs))
	var total int64
	for _, r := range runs {
		for k := range r.Len {
			v := int64(r.At(k))
			key := fmt.Sprintf("%s %d", name, v)
			if h.given[key] {
				h.violated("twice", "node %d: %s", n.id, key)
			}
			h.given[key] = true
			rank, ours := h.rank(name, v)
			if !ours {
				h.violated("key", "node %d: %s is a value under no key of it", n.id, key)
			}
			if !h.inOrder(name) && rank <= n.max[name] {
				h.violated("order", "node %d: %s after %d", n.id, key, n.max[name])
			}
			if h.inOrder(name) && rank <= before {
				h.violated("order", "node %d: %s, after %d of any node", n.id, key, before)
			}
			n.max[name] = rank
			h.highest[name] = max(h.highest[name], v)
			total++
		}
	}
	if total != int64(count) {
		h.violated("count", "node %d: %d of %d values", n.id, total, count)
	}
	h.issued += count
	h.strict[name].answer(int64(count))
}

// scenarios are courses of events that random ones reach too rarely.
var scenarios = [...]func(*history){
	(*history).loseTwice, (*history).noticeLate, (*history).loseAlone, (*history).loseUnknown, (*history).loseRaise,
	(*history).loseYoung,
	(*history).putBackLate, (*history).loseKeys, (*history).loseInAGap, (*history).loseBusy, (*history).loseChange,
	(*history).goOnAlone, (*history).loseOwner, (*history).loseTakeOver, (*history).loseSecond,
	(*history).loseStanding, (*history).raiseUnheard, (*history).loseWitnesses, (*history).readEarly,
	(*history).bootAlone,
}

// stage plays one of them.
func (h *history) stage() {
	h.staged = true
	scenarios[h.rng.IntN(len(scenarios))](h)
	h.staged = false
}

func (h *history) play() {
	defer h.checkCeiling()
	defer h.checkGaps("x0")
	defer h.checkIncarnation()
	for range *simStaged {
		h.stage()
	}
	if *simStaged > 0 {
		return
	}
	for range 120 {
		if h.wrong != "" {
			return
		}
		h.turn()
	}
}

// turn plays one random event.
func (h *history) turn() {
	keeps := h.seed%8 == 7
	n := h.nodes[h.rng.IntN(len(h.nodes))]
	free := !h.mustNotice(n)
	if h.base != "" && h.rng.IntN(12) == 0 {
		h.moveDirectory(n)
	}
	switch k := h.rng.IntN(100); {
	case k < 60:
		h.request(n)
		h.answerLate()
	case k < 70:
		h.run(h.rng.Int64N(2000))
	case k < 74:
		h.run(h.rng.Int64N(60_000))
	case k < 78:
		h.copies = append(h.copies, simCopy{h.now, h.Mem.Snapshot()})
	case k < 82 && keeps, k >= 84 && k < 86 && keeps: // data are never lost
	case k < 82:
		h.lose()
	case k < 84:
		h.jump()
	case k < 86:
		h.stage()
	case k < 87 && free:
		n.cut = true
		n.store.Partition()
		n.store.Expire()
		h.note("node %d is cut off", n.id)
	case k < 91:
		n.cut = false
		n.store.Heal()
		h.note("node %d is back", n.id)
	case k < 93 && free:
		if h.rng.IntN(2) == 0 && !n.busy && h.now >= n.pauseTill {
			n.stop()
		} else {
			h.note("node %d is killed and started", n.id)
		}
		n.start(!n.leaves && h.rng.IntN(3) > 0)
	case k < 95 && free:
		h.standStill(n, h.rng.Int64N(40_000))
	case k < 96 && free && h.rng.IntN(3) == 0 && !n.busy:
		n.fenced()
	case k < 96 && len(h.lives) > 0:
		h.loseKey()
	case k < 97 && free && h.rng.IntN(3) == 0:
		n.reboot()
		h.note("the machine of node %d starts again", n.id)
	case k < 97:
		n.store.Expire()
		h.note("node %d: session expired", n.id)
	case k < 98:
		h.Mem.Deliver()
	case k < 99:
		n.store.Lag()
	default:
		h.setClocks(n)
	}
}

// request sends a random request to a node.
func (h *history) request(n *simNode) {
	count := 1
	switch h.rng.IntN(6) {
	case 0, 1:
		count = 1 + h.rng.IntN(200)
	case 2:
		count = 1 + h.rng.IntN(3000)
	}
	name, kind := h.names[h.rng.IntN(len(h.names))], 9
	if h.strict[name] != nil {
		kind = h.rng.IntN(6)
	}
	switch kind {
	case 0, 1:
		h.askTogether(n, name)
	case 2, 3:
		h.askKeyed(n, name)
	default:
		h.ask(n, name, count, h.rng.IntN(4) == 0)
	}
}
