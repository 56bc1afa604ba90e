package judge

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/flaked/flaked/worker"
)

// chunk is the number of answers sorted in memory at a time: 32 MiB.
const chunk = 1 << 20

// Judge reads the files that recorders wrote and returns what violates the rules. Each file
// must be in the order of its client's requests. Judge needs as much free space in os.TempDir
// as the files take. Its error concerns reading and writing files. Violations are in the
// Verdict.
func Judge(paths []string, rules Rules) (*Verdict, error) {
	v := &Verdict{Workers: map[int64]int64{}, Highest: map[int64]worker.ID{}, Violations: map[Check]int64{}}
	if err := v.inOrder(paths, rules); err != nil {
		return nil, err
	}
	return v, v.unique(paths, rules)
}

// unique sorts all answers by their first ID. An answer holds an ID a second time if it begins
// at or below the highest ID so far.
func (v *Verdict) unique(paths []string, rules Rules) (err error) {
	dir, err := os.MkdirTemp("", "flaked-judge-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files, err := sorted(paths, dir, byFirst, chunk)
	if err != nil {
		return err
	}
	m, err := newMerge(files, byFirst)
	if err != nil {
		return err
	}
	highest := Answer{Len: 1} // the answer with the highest ID so far; IDs begin at 1
	for a := range m.all() {
		if a.First <= highest.Last() {
			v.found(Unique, "%s; and %s", rules.describe(highest), rules.describe(a))
		}
		if a.Last() > highest.Last() {
			highest = a
		}
	}
	return m.close()
}

// inOrder checks the order and the timestamps. It reads the answers in the order of Asked, and
// beside them the same answers in the order of Got. So each answer is compared with those that
// clients had received before it was asked for.
func (v *Verdict) inOrder(paths []string, rules Rules) error {
	asked, err := newMerge(paths, byAsked)
	if err != nil {
		return err
	}
	answered, err := newMerge(paths, byGot)
	if err != nil {
		return errors.Join(err, asked.close())
	}
	type latest struct {
		Answer
		worker int64
	}
	conns := map[uint32]latest{}
	workers := map[int64]Answer{} // the highest one received so far
	nodes := map[uint16]Answer{}  // likewise, within the latest era
	for a := range asked.all() {
		v.Answers++
		v.IDs += int64(a.Len)
		first, err := rules.Layout.Decode(a.First)
		last, err2 := rules.Layout.Decode(a.Last())
		if err != nil || err2 != nil || last.Worker != first.Worker {
			v.found(Times, "no such IDs in the layout: %s", rules.describe(a))
			continue
		}
		v.Workers[first.Worker] += int64(a.Len)
		v.Highest[first.Worker] = max(v.Highest[first.Worker], a.Last())

		for b, ok := answered.peek(); ok && b.Got < a.Asked; b, ok = answered.peek() {
			answered.next()
			if f, err := rules.Layout.Decode(b.First); err == nil && b.Last() > workers[f.Worker].last() {
				workers[f.Worker] = b
			}
			if era, before := rules.era(b), nodes[b.Node]; era >= 0 && (era != rules.era(before) || b.Last() > before.last()) {
				nodes[b.Node] = b
			}
		}
		if before := workers[first.Worker]; a.First <= before.last() {
			v.found(Worker, "%s; after %s", rules.describe(a), rules.describe(before))
		}
		era := rules.era(a)
		if before := nodes[a.Node]; era >= 0 && era == rules.era(before) && a.First <= before.last() {
			v.found(Node, "%s; after %s", rules.describe(a), rules.describe(before))
		}
		// A node whose clock went back may acquire another worker, whose IDs are
		// lower. The IDs of one worker must increase in any case.
		if before, ok := conns[a.Conn]; ok && a.First <= before.Last() &&
			(before.worker == first.Worker || era >= 0 && era == rules.era(before.Answer)) {
			v.found(Connection, "%s; after %s", rules.describe(a), rules.describe(before.Answer))
		}
		conns[a.Conn] = latest{a, first.Worker}
		v.times(a, rules.Layout.Time(first).UnixMilli(), rules.Layout.Time(last).UnixMilli(), rules)
	}
	return errors.Join(asked.close(), answered.close())
}

// times checks the timestamps of an answer's first and last ID, in Unix ms, against
// Rules.Times and Rules.Forbidden.
func (v *Verdict) times(a Answer, first, last int64, rules Rules) {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if rules.Times != nil {
		low, high = rules.Times(a)
	}
	if first < low || last > high {
		v.found(Times, "%s, while its clock showed from %d ms after that to %d ms after", rules.describe(a), low-first, high-last)
	}
	for _, f := range rules.Forbidden {
		if f.holds(a) && last >= f.From {
			v.found(Refusals, "%s: %s, and that is %d ms above", f.Why, rules.describe(a), last-f.From)
		}
	}
}

// era returns the number of the node's Unordered spans that ended before the answer was asked
// for, or -1 if it was asked for within one. Order is checked among answers of one era only.
func (r Rules) era(a Answer) int {
	era := 0
	for _, s := range r.Unordered {
		if s.holds(a) {
			return -1
		}
		if s.Node == a.Node && s.To <= a.Asked {
			era++
		}
	}
	return era
}

// last returns Last, or 0 for the zero Answer.
func (a Answer) last() worker.ID {
	if a.Len == 0 {
		return 0
	}
	return a.Last()
}

// String returns the verdict in one line.
func (v *Verdict) String() string {
	if v.OK() {
		return fmt.Sprintf("%d IDs of %d workers: no violation", v.IDs, len(v.Workers))
	}
	return fmt.Sprintf("%d IDs of %d workers: %v", v.IDs, len(v.Workers), v.Violations)
}
