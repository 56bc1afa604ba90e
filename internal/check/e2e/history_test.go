package e2e

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/worker"
)

// answer is one ID that a client received, with the times of its request and of the reply.
type answer struct {
	id         worker.ID
	asked, got time.Duration // since the history began, by the monotonic clock
}

// history holds every ID that the nodes of one test have issued to its clients.
type history struct {
	began time.Time

	mu      sync.Mutex // guards the fields below
	layout  worker.Layout
	answers []answer
}

func newHistory() *history { return &history{began: time.Now(), layout: worker.Leaf()} }

func (h *history) now() time.Duration { return time.Since(h.began) }

// record adds the IDs of one reply.
func (h *history) record(asked, got time.Duration, ids ...worker.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		h.answers = append(h.answers, answer{id, asked, got})
	}
}

func (h *history) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.answers)
}

// check fails the test if an ID occurs twice. It also fails if an ID is below an earlier one of
// its worker, even from another process. Earlier means that a client had received that ID before
// the request for this one. If the layout has a rollback field, the order is not checked.
func (h *history) check(t testing.TB) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	byID := slices.SortedFunc(slices.Values(h.answers), func(a, b answer) int { return cmp.Compare(a.id, b.id) })
	for i := 1; i < len(byID); i++ {
		if a, b := byID[i-1], byID[i]; a.id == b.id {
			t.Errorf("DUPLICATE: %s was handed out at %s and at %s", h.describe(a.id), a.got, b.got)
			return
		}
	}
	if h.layout.RollbackBits > 0 {
		return // IDs go back along with the clock
	}
	// In the order of asking, compare each answer with the highest ID of its worker that had
	// been received by then. This is linear for any number of connections and nodes.
	byAsked := slices.SortedFunc(slices.Values(h.answers), func(a, b answer) int { return cmp.Compare(a.asked, b.asked) })
	byGot := slices.SortedFunc(slices.Values(h.answers), func(a, b answer) int { return cmp.Compare(a.got, b.got) })
	highest, next := map[int64]answer{}, 0
	for _, a := range byAsked {
		for ; byGot[next].got < a.asked; next++ {
			if w := h.worker(byGot[next].id); byGot[next].id > highest[w].id {
				highest[w] = byGot[next]
			}
		}
		if before := highest[h.worker(a.id)]; a.id < before.id {
			t.Errorf("OUT OF ORDER: %s, asked for at %s, after %s had been answered at %s", h.describe(a.id), a.asked, h.describe(before.id), before.got)
			return
		}
	}
}

func (h *history) worker(id worker.ID) int64 {
	f, err := h.layout.Decode(id)
	if err != nil {
		return -1
	}
	return f.Worker
}

func (h *history) describe(id worker.ID) string {
	f, err := h.layout.Decode(id)
	if err != nil {
		return err.Error()
	}
	return id.String() + " (worker " + worker.ID(f.Worker).String() + ", " + h.layout.Time(f).Format("15:04:05.000") + ", sequence " + worker.ID(f.Sequence).String() + ")"
}

// check must find the violation in each row that has one.
func TestHistoryFindsViolations(t *testing.T) {
	id := func(tick worker.Tick, w, seq int64) worker.ID {
		id, err := worker.Leaf().Encode(worker.Fields{Tick: tick, Worker: w, Sequence: seq})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, row := range []struct {
		name    string
		answers []answer
		wrong   bool
	}{
		{"none", nil, false},
		{"in order", []answer{{id(1, 1, 0), 0, 1}, {id(1, 1, 1), 2, 3}}, false},
		{"twice", []answer{{id(1, 1, 0), 0, 1}, {id(1, 1, 0), 2, 3}}, true},
		{"lower later", []answer{{id(2, 1, 0), 0, 1}, {id(1, 1, 0), 2, 3}}, true},
		{"lower at the same time", []answer{{id(2, 1, 0), 0, 5}, {id(1, 1, 0), 1, 3}}, false},
		{"lower of another worker", []answer{{id(2, 1, 0), 0, 1}, {id(1, 2, 0), 2, 3}}, false},
		{"lower than one long ago", []answer{{id(9, 1, 0), 0, 1}, {id(3, 2, 0), 2, 3}, {id(2, 1, 0), 4, 5}}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHistory()
			h.answers = row.answers
			judge := &verdict{TB: t}
			h.check(judge)
			if judge.wrong != row.wrong {
				t.Errorf("wrong is %v, want %v", judge.wrong, row.wrong)
			}
		})
	}
}

// verdict records whether a check reported an error, instead of failing the test.
type verdict struct {
	testing.TB
	wrong bool
}

func (v *verdict) Errorf(string, ...any) { v.wrong = true }
