package poll

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// A broken node may name any number of peers. So a survey dials maxInSurvey addresses at most, and ends after
// surveyTime.
const (
	maxInSurvey = 4096
	surveyTime  = time.Minute
)

// Holder is a node that may run and issue: an operator, a record or another node names it.
type Holder struct {
	Name, Address string // display name and address, for people
	identity      string // its UUID, "" if only the address is known
	worker        int    // -1: not known
	term          int64
	ended         bool     // by its record it has stopped cleanly, and no node has met it later
	dialable      []string // its addresses that can be dialled from here
}

// Reply is the outcome of asking at one address: which node has answered, and what it said.
type Reply struct {
	Address string
	Name    string
	// Line is the reply to the second request.
	Line string
	// Outcome is the result of asking, as in `flaked status`, and Why explains it.
	Outcome health.Outcome
	Why     string

	named bool // the user named the address
	// snapshot is its state, empty unless it is a node of the cluster.
	snapshot node.Snapshot
}

// Survey has the answers of the nodes of a cluster, also of those whose records ZooKeeper has lost: each node names the
// peers that it has met. A node has answered if it says itself who it is. Another node may have its address by now.
type Survey struct {
	asker   *Asker
	second  string // the request to each node after STATUS, "" for none
	cluster coordinator.Cluster
	entries []coordinator.Entry

	// Replies are the outcomes at all addresses. LeftOut counts the addresses and nodes that are not asked, because
	// there are too many.
	Replies []Reply
	LeftOut int

	holders   []Holder
	inReplies map[string]bool // addresses in Replies

	mu        sync.Mutex
	metNow    []coordinator.Peer        // named first by a node of the present wave of requests
	metBefore map[coordinator.Peer]bool // named by any node
}

// AskCluster reads the workers of a cluster and asks all nodes that may run. named are addresses that the user named.
// second is the request to each node after STATUS, "" for none.
func AskCluster(ctx context.Context, st store.Store, asker *Asker, named []string, second string) (*Survey, error) {
	cl, err := coordinator.ReadCluster(ctx, st)
	if err != nil {
		return nil, err
	}
	entries, err := coordinator.ReadSlots(ctx, st, cl)
	if err != nil {
		return nil, err
	}
	s := &Survey{asker: asker, second: second, cluster: cl, entries: entries, inReplies: make(map[string]bool),
		metBefore: make(map[coordinator.Peer]bool)}
	for _, addr := range named {
		s.holders = append(s.holders, Holder{Address: addr, worker: -1, dialable: s.addAddresses([]string{addr}, true)})
	}
	for _, e := range entries {
		if slot := e.Slot; slot.Node != "" {
			s.addHolder(coordinator.Peer{Node: slot.Node, Worker: e.Worker, Term: slot.Term, Name: slot.Name,
				Address: slot.Address, Host: slot.Host}, !e.Holds())
		}
	}
	s.ask(ctx)
	return s, ctx.Err()
}

// addHolder notes a node that may run. ended: see Holder.
func (s *Survey) addHolder(p coordinator.Peer, ended bool) {
	addresses := s.addAddresses(s.asker.dialAddresses(p.Address, p.Host), false)
	for k := range s.holders {
		h := &s.holders[k]
		if h.identity != p.Node || h.worker != p.Worker {
			continue
		}
		if p.Term > h.term { // what was noted of the holder before is older
			h.ended, h.term = ended, p.Term
		}
		h.dialable = append(h.dialable, addresses...)
		return
	}
	s.holders = append(s.holders, Holder{
		identity: p.Node, Name: words.Short(p.Name), Address: words.Short(p.Address), worker: p.Worker, term: p.Term,
		ended: ended, dialable: addresses,
	})
}

// addAddresses notes addresses to be dialled, and returns them.
func (s *Survey) addAddresses(addresses []string, named bool) []string {
	for _, addr := range addresses {
		switch {
		case s.inReplies[addr]:
		case len(s.Replies) >= maxInSurvey:
			s.LeftOut++
		default:
			s.inReplies[addr] = true
			s.Replies = append(s.Replies, Reply{Address: addr, named: named})
		}
	}
	return addresses
}

// ask asks at all addresses, also those that the answers name.
func (s *Survey) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	for asked := 0; asked < len(s.Replies); {
		some := s.Replies[asked:]
		asked = len(s.Replies)
		inParallel(len(some), func(k int) { s.addPeers(s.askAt(ctx, &some[k])) })
		slices.SortFunc(s.metNow, func(a, b coordinator.Peer) int {
			return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Term, b.Term), cmp.Compare(a.Node, b.Node),
				cmp.Compare(a.Address, b.Address))
		})
		for _, p := range s.metNow {
			s.addHolder(p, false)
		}
		s.metNow = nil
	}
}

// addPeers notes the peers that one node has met.
func (s *Survey) addPeers(peers []coordinator.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range peers {
		p.SeenMs = 0
		switch {
		case p.Node == "" || s.metBefore[p]:
		case len(s.metBefore) >= maxInSurvey:
			s.LeftOut++
		default:
			s.metBefore[p] = true
			s.metNow = append(s.metNow, p)
		}
	}
}

// askAt asks at one address. It returns the peers that the node has met.
func (s *Survey) askAt(ctx context.Context, r *Reply) []coordinator.Peer {
	requests := []string{"STATUS peers"}
	if s.second != "" {
		requests = append(requests, s.second)
	}
	// The cluster is compared in the first answer, and a connection belongs to one process.
	got := s.asker.ask(ctx, r.Address, r.named, requests...)
	doc := got.doc
	switch {
	case got.outcome != health.Answered:
		r.Outcome, r.Why = got.outcome, got.why
	case doc.Cluster.UUID == "":
		r.Outcome, r.Why = health.NoAnswer, "it has not joined the cluster yet"
	case doc.Cluster.UUID != s.cluster.UUID:
		r.Outcome, r.Why = health.AnotherNode, otherCluster(doc.Cluster, s.cluster.UUID)
	default:
		r.Outcome, r.snapshot, r.Name, r.Line = health.Answered, doc.Node, words.Short(doc.Node.Name), got.second
		return doc.Peers
	}
	return nil
}

// Refused returns the error in the reply to the second request, nil for none.
func (r Reply) Refused() error {
	if strings.HasPrefix(r.Line, "-") {
		return dialog.Refusal(r.Address, r.Line)
	}
	return nil
}

// answered reports whether a node has answered: with its identity, at any address.
func (s *Survey) answered(h Holder) bool {
	return slices.ContainsFunc(s.Replies, func(r Reply) bool {
		if h.identity == "" {
			return r.Outcome == health.Answered && r.Address == h.Address
		}
		return r.Outcome == health.Answered && r.snapshot.Node == h.identity
	})
}

// Silent returns the nodes that may run and have not answered.
func (s *Survey) Silent() (silent []Holder) {
	for _, h := range s.holders {
		if !h.ended && !s.answered(h) {
			silent = append(silent, h)
		}
	}
	return silent
}

// MissingWorkers returns the workers whose records ZooKeeper has lost, and that no node that answered holds.
func (s *Survey) MissingWorkers() (workers []int) {
	for _, w := range health.DraftOf("", s.cluster, s.entries, time.Now()).Workers {
		held := slices.ContainsFunc(s.Replies, func(r Reply) bool {
			return r.Outcome == health.Answered && r.snapshot.Worker != nil && *r.snapshot.Worker == w.Worker
		})
		if w.State == health.RecordMissing && !held {
			workers = append(workers, w.Worker)
		}
	}
	return workers
}

// Unrecorded names the nodes that have answered and whose workers ZooKeeper may give to others: the worker's record
// is another node's, or an older copy with an earlier lease bound. If the node is connected, an older copy does not
// count, because the node puts its record back.
func (s *Survey) Unrecorded() (names []string) {
	for _, r := range s.Replies {
		own := r.snapshot
		if r.Outcome != health.Answered || own.Worker == nil {
			continue
		}
		kept := slices.ContainsFunc(s.entries, func(e coordinator.Entry) bool {
			return e.Worker == *own.Worker && e.Slot.Node == own.Node &&
				(own.ZooKeeper.OK || own.LeaseEndsMs == nil || e.Slot.LeaseUntil >= *own.LeaseEndsMs)
		})
		if !kept {
			holder := Holder{identity: own.Node, Name: r.Name, Address: r.Address}
			names = append(names, fmt.Sprintf("%s (worker %d)", holder, *own.Worker))
		}
	}
	return names
}

// The words of --confirm name at most maxNamed silent nodes. They count the others.
const maxNamed = 8

// UnheardText names the nodes that have not answered, for the words that confirm a command. It is "" if all have
// answered.
func (s *Survey) UnheardText() string {
	var all []string
	silent := s.Silent()
	for _, h := range silent[:min(len(silent), maxNamed)] {
		all = append(all, h.String())
	}
	if more := max(0, len(silent)-maxNamed) + s.LeftOut; more > 0 {
		all = append(all, strconv.Itoa(more)+" more")
	}
	if missing := s.MissingWorkers(); len(missing) > 0 {
		all = append(all, "the holders of the missing "+words.WorkerNumbers(missing))
	}
	return strings.Join(all, ", ")
}

func (h Holder) String() string {
	at := cmp.Or(h.Address, "without an address")
	return strings.TrimSpace(cmp.Or(h.Name, words.Short(h.identity)) + " " + at)
}

// OutcomeOf returns the outcome at the addresses of a node that has not answered: see mostTelling.
func (s *Survey) OutcomeOf(h Holder) (outcome health.Outcome, why string) {
	var there []Reply
	for _, r := range s.Replies {
		if slices.Contains(h.dialable, r.Address) {
			there = append(there, r)
		}
	}
	i := mostTelling(there, func(r Reply) health.Outcome { return r.Outcome })
	if i < 0 {
		return health.NoAddress, ""
	}
	r := there[i]
	if r.Outcome == health.Answered {
		return health.AnotherNode, fmt.Sprintf("%s answers there", cmp.Or(r.Name, words.Short(r.snapshot.Node), "a node"))
	}
	return r.Outcome, r.Why
}
