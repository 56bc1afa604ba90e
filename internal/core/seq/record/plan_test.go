package record

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// usual returns a record with a ceiling of 1000 a second, of which 5000 positions may be taken at time 0.
// change changes it.
func usual(change func(*Record)) Record {
	r := Record{
		ID: "id", Map: sequence.Map{Start: 1, Increment: 1, Max: 1_000_000_000}, Settings: settings(1000),
		Next: 100, Credit: 5000, WriteCount: 10, Nonce: "nonce", Incarnation: 1,
	}
	if change != nil {
		change(&r)
	}
	return r
}

// settings returns those of a sequence with this ceiling.
func settings(ceiling int64) Settings {
	return Settings{Block: 32, SupplyMs: 60_000, HoldMs: 600_000, Ceiling: ceiling, HardCeiling: ceiling}
}

func plain() sequence.Map {
	return sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}
}

func scattered() sequence.Map {
	return sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript, Scatter: 40}
}

func ptr[T any](v T) *T { return &v }

func TestPlan(t *testing.T) {
	// The first block of an incarnation skipped from an older copy, further than from this record.
	peak := func(r *Record) { r.PeakFrom, r.PeakAt = r.Next+900_000, 0 }
	for name, c := range map[string]struct {
		change      func(*Record)
		incarnation int64
		want, need  int64
		now         int64 // ms
		block       positions.Block
		refusal     Reason
		retryMs     int64
		budget      positions.Budget
	}{
		"a block": {incarnation: 1, want: 1000, need: 1,
			block: positions.Block{First: 100, End: 1100}, budget: positions.Budget{Credit: 4000}},
		"time earns credit": {incarnation: 1, want: 1000, need: 1, now: 2000,
			block: positions.Block{First: 100, End: 1100}, budget: positions.Budget{Credit: 6000, At: 2000}},
		"as much as there is credit": {incarnation: 1, want: 9000, need: 1,
			block: positions.Block{First: 100, End: 5100}},
		"too little credit": {incarnation: 1, want: 9000, need: 6000, refusal: CeilingReached,
			retryMs: 1000},
		"a clock that is behind": {change: func(r *Record) { r.Credit, r.CreditAt = 0, 3000 }, incarnation: 1,
			want: 1, need: 1, refusal: CeilingReached, retryMs: 3100},
		"the last positions": {change: func(r *Record) { r.Max = 150 }, incarnation: 1, want: 1000,
			need: 50, block: positions.Block{First: 100, End: 150}, budget: positions.Budget{Credit: 4950}},
		"too few are left": {change: func(r *Record) { r.Max = 150 }, incarnation: 1, want: 1000,
			need: 51, refusal: Exhausted},
		"none is left": {change: func(r *Record) { r.Max = 100 }, incarnation: 1, want: 1000,
			need: 1, refusal: Exhausted},
		"none is left, after a loss": {change: func(r *Record) { r.Max = 100 }, incarnation: 2, want: 1000,
			need: 1, refusal: Exhausted},
		"a skip after a loss": {incarnation: 2, want: 500, need: 1, now: 2000,
			block: positions.Block{First: 7100, End: 7600}, budget: positions.Budget{Credit: -500, At: 2000}},
		"the first block is small": {incarnation: 2, want: 5000, need: 5000, now: 2000,
			block: positions.Block{First: 7100, End: 8350}, budget: positions.Budget{Credit: -1250, At: 2000}},
		"the skip is by the hard limit": {change: func(r *Record) { r.Ceiling = 10 }, incarnation: 2, want: 500,
			need: 1, now: 2000, block: positions.Block{First: 7100, End: 7112},
			budget: positions.Budget{Credit: -12, At: 2000}},
		"a debt shortens the skip": {change: func(r *Record) { r.Credit = -1000 }, incarnation: 2, want: 500,
			need: 1, now: 2000, block: positions.Block{First: 1100, End: 1600},
			budget: positions.Budget{Credit: -500, At: 2000}},
		"too large a debt": {change: func(r *Record) { r.Credit = -2500 }, incarnation: 2, want: 500,
			need: 1, now: 2000, refusal: CeilingReached, retryMs: 500},
		"too large a skip": {change: func(r *Record) { r.Max = 50_000 }, incarnation: 2, want: 500,
			need: 1, refusal: Frozen},
		"a peak that does not count yet": {change: peak, incarnation: 2, want: 10, need: 1, now: 1000,
			block: positions.Block{First: 6100, End: 6110}, budget: positions.Budget{Credit: -10, At: 1000}},
		"a whole incarnation is lost": {change: peak, incarnation: 3, want: 10, need: 1, now: 1000,
			block: positions.Block{First: 901_100, End: 901_110}, budget: positions.Budget{Credit: -10, At: 1000}},
		"a peak above the last int64": {change: func(r *Record) {
			r.Max, r.Ceiling, r.HardCeiling, r.PeakFrom = math.MaxInt64, 1e12, 1e12, r.Next+1e13
		}, incarnation: 3, want: 1, need: 1, now: 10_000_000_000, refusal: Frozen},
	} {
		r := usual(c.change)
		w, refusal := r.Plan(c.incarnation, c.want, c.need, c.now)
		if c.refusal != "" {
			if refusal == nil || refusal.Reason != c.refusal ||
				refusal.RetryAfter != time.Duration(c.retryMs)*time.Millisecond {
				t.Errorf("%s: %v, %v", name, w.Block, refusal)
			}
			if refusal.Why() == CeilingReached && !strings.Contains(refusal.Text, "up to the hard one") {
				t.Errorf("%s: advises what may not be possible: %v", name, refusal)
			}
			continue
		}
		if refusal != nil || w.Block != c.block || w.Record.Next != c.block.End ||
			w.Record.Incarnation != c.incarnation || w.Record.Budget() != c.budget {
			t.Errorf("%s: %v, %v, %+v", name, w.Block, refusal, w.Record)
		}
	}
}

func TestRefresh(t *testing.T) {
	minute := time.Minute.Milliseconds()
	for name, c := range map[string]struct {
		incarnation, now int64
		due              bool
	}{
		"a young record":                {1, minute - 1, false},
		"an old record":                 {1, minute, true},
		"a record from before the loss": {2, minute, false},
	} {
		w, due := usual(nil).Refresh(c.incarnation, c.now, time.Minute)
		if due != c.due || due && (w.CreditAt != c.now || w.Credit != 10_000 || w.Next != 100) {
			t.Errorf("%s: %v, %+v", name, due, w)
		}
	}
}

func TestReturnOf(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*Record)
		first    int64
		possible bool
	}{
		"the rest of the block":      {nil, 80, true},
		"all of it":                  {nil, 50, true},
		"nothing is left":            {nil, 100, false},
		"a renewal":                  {func(r *Record) { r.Nonce = "other" }, 80, true},
		"another block":              {func(r *Record) { r.Next = 200 }, 80, false},
		"a next value in the rest":   {func(r *Record) { r.RaisedTo = 81 }, 80, false},
		"data were lost":             {func(r *Record) { r.Incarnation = 2 }, 80, false},
		"deleted":                    {func(r *Record) { r.DeletedAt = 1 }, 80, false},
		"deleted, and created again": {func(r *Record) { r.ID = "new" }, 80, false},
	} {
		w, possible := usual(c.change).ReturnOf(Remainder{usual(nil).ID, usual(nil).Incarnation,
			positions.Block{First: c.first, End: 100}}, 1)
		if possible != c.possible || possible && (w.Next != c.first || w.Credit != 5000+100-c.first) {
			t.Errorf("%s: %v, %+v", name, possible, w)
		}
	}
	rest := Remainder{usual(nil).ID, usual(nil).Incarnation, positions.Block{First: 50, End: 100}}
	if _, possible := usual(nil).ReturnOf(rest, 2); possible {
		t.Error("the record is from an earlier incarnation")
	}
	if _, possible := usual(func(r *Record) { r.Incarnation = 2 }).ReturnOf(rest, 2); possible {
		t.Error("the block is from an earlier incarnation")
	}
	full := usual(func(r *Record) { r.Credit = 9_990 })
	if w, _ := full.ReturnOf(rest, 1); w.Credit != 10_000 {
		t.Errorf("the credit is %d", w.Credit)
	}
}

func TestSettingsCheck(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Settings)
		ok     bool
	}{
		"usual":                         {func(*Settings) {}, true},
		"the smallest block":            {func(s *Settings) { s.Block = positions.MinBlock }, true},
		"too small a block":             {func(s *Settings) { s.Block = positions.MinBlock - 1 }, false},
		"too large a block":             {func(s *Settings) { s.Block = positions.MaxBlock + 1 }, false},
		"no supply":                     {func(s *Settings) { s.SupplyMs = 0 }, false},
		"no hold":                       {func(s *Settings) { s.HoldMs = 0 }, false},
		"the longest hold":              {func(s *Settings) { s.HoldMs = Forever.Milliseconds() }, true},
		"a hold that overflows":         {func(s *Settings) { s.HoldMs = math.MaxInt64 / 1_000_000 }, false},
		"a ceiling of 0":                {func(s *Settings) { s.Ceiling = 0 }, false},
		"a ceiling above the hard one":  {func(s *Settings) { s.Ceiling = s.HardCeiling + 1 }, false},
		"no hard ceiling":               {func(s *Settings) { s.Ceiling, s.HardCeiling = 0, 0 }, false},
		"the ceiling is below the hard": {func(s *Settings) { s.Ceiling = 1 }, true},
	} {
		s := settings(1000)
		c.change(&s)
		if err := s.Check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// However much sequence time passes, a name whose hold was Forever once can not be purged, in no later life.
func TestForeverNeverPasses(t *testing.T) {
	r := usual(func(r *Record) { r.HoldMs, r.EarlierHoldMs = 1000, Forever.Milliseconds() }).Deleted(State{Incarnation: 1}, 1)
	for _, passed := range []int64{0, math.MaxInt64 / 2} {
		if left := r.IssuableFor(State{Time: passed}); left != Forever {
			t.Errorf("after %d ms: %s", passed, left)
		}
	}
}

// A set at version -1 is unconditional. So no record may stay at that version.
func TestNoRecordStaysAtVersionMinusOne(t *testing.T) {
	for version, want := range map[int32][]int32{0: {0}, 7: {7}, -3: {-3}, -2: {-2, -1}} {
		ops := SetOps("order", usual(nil), version)
		var got []int32
		for _, op := range ops {
			got = append(got, op.(store.SetOp).Version)
		}
		if !slices.Equal(got, want) {
			t.Errorf("version %d: %v", version, ops)
		}
	}
}

// PeakFrom and PeakAt stay, also after a loss. PeakFrom follows a next value that is raised.
func TestPeak(t *testing.T) {
	r := usual(func(r *Record) { r.PeakFrom, r.PeakAt = 10_100, 0 })
	if up := r.Raised(r.Next + 500); up.PeakFrom != r.PeakFrom+500 || up.Next != r.Next+500 {
		t.Errorf("raised: %+v", up)
	}
	if c, _ := r.Plan(1, 10, 1, 5000); c.Record.PeakFrom != r.PeakFrom || c.Record.PeakAt != r.PeakAt {
		t.Errorf("in the same incarnation: %+v", c.Record)
	}
	if c, _ := r.Plan(2, 10, 1, 5000); c.Record.PeakFrom != r.PeakFrom || c.Record.PeakAt != r.PeakAt {
		t.Errorf("after a loss: %+v", c.Record)
	}
}

func TestNextBlockOutlook(t *testing.T) {
	const now = 1_800_000_000_000
	fresh := Record{
		Map:      sequence.Map{Start: 1, Increment: 1, Max: 1_000_000},
		Settings: Settings{Block: 32, SupplyMs: 1000, HoldMs: 1000, Ceiling: 10, HardCeiling: 100},
		Credit:   50, CreditAt: now, Incarnation: 1,
	}
	for _, row := range []struct {
		name        string
		incarnation int64
		change      func(*Record)
		want        NextBlockOutlook
	}{
		{"in use", 1, func(*Record) {}, NextBlockOutlook{}},
		{"no credit", 1, func(r *Record) { r.Credit = 0 }, NextBlockOutlook{Refusal: CeilingReached}},
		{"used up", 1, func(r *Record) { r.Next = r.Positions() }, NextBlockOutlook{Refusal: Exhausted}},
		{"data lost: the credit", 2, func(*Record) {}, NextBlockOutlook{Skip: 50}},
		{"data lost, an old record", 2, func(r *Record) { r.CreditAt -= 20_000 }, NextBlockOutlook{Skip: 50 + 20*100}},
		{"data lost, strict", 2, func(r *Record) { r.Mode = Strict }, NextBlockOutlook{Refusal: Frozen}},
		{"data lost, more than a tenth of what is left", 2, func(r *Record) { r.Max = 499 }, NextBlockOutlook{Refusal: Frozen}},
	} {
		r := fresh
		row.change(&r)
		if got := r.NextBlockOutlook(State{Incarnation: row.incarnation, Time: now}); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

func TestCompare(t *testing.T) {
	known := usual(nil)
	tombstone := usual(func(r *Record) { r.DeletedAt = 1 })
	for name, c := range map[string]struct {
		found, known *Record
		purged       int64
		want         Finding
	}{
		"nothing is known": {nil, nil, 0, Absent},
		"a new record":     {&known, nil, 0, Good},
		"the known record": {&known, &known, 0, Good},
		"a later write":    {ptr(usual(func(r *Record) { r.WriteCount++ })), &known, 0, Good},
		"an earlier write": {ptr(usual(func(r *Record) { r.WriteCount-- })), &known, 0, Lost},
		"a later incarnation with fewer writes": {ptr(usual(func(r *Record) { r.Incarnation, r.WriteCount = 2, 1 })),
			&known, 0, Good},
		"an earlier incarnation with more writes": {&known,
			ptr(usual(func(r *Record) { r.Incarnation, r.WriteCount = 2, 1 })), 0, Lost},
		"another write with as many before": {ptr(usual(func(r *Record) { r.Nonce = "x" })), &known, 0, Lost},
		"missing":                           {nil, &known, 9, Lost},
		"deleted and purged meanwhile":      {nil, &known, 10, Absent},
		"a tombstone is missing":            {nil, &tombstone, 9, Lost},
		"a tombstone was purged":            {nil, &tombstone, 10, Absent},
		"a tombstone is alive again in an old copy": {ptr(usual(func(r *Record) { r.WriteCount-- })), &tombstone, 0,
			Lost},
	} {
		if got := Compare(c.found, c.known, c.purged); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}

func TestPutBack(t *testing.T) {
	older := func(r *Record) { r.WriteCount, r.Next = 8, 60 }
	rival := func(r *Record) { r.Nonce, r.Next, r.WriteCount = "rival", 90, 12 }
	for name, c := range map[string]struct {
		found         *Record
		known         Record
		highest       int64
		due           bool
		id            string
		next, gen, at int64
	}{
		"missing":         {nil, usual(nil), 100, true, "id", 100, 10, 0},
		"an older record": {ptr(usual(older)), usual(nil), 100, true, "id", 100, 10, 0},
		"the known one":   {ptr(usual(nil)), usual(nil), 100, false, "id", 100, 10, 0},
		"a newer one": {ptr(usual(func(r *Record) { r.WriteCount, r.Next = 12, 130 })),
			usual(nil), 100, false, "id", 130, 12, 0},
		"a newer one with a lower next": {ptr(usual(func(r *Record) { r.WriteCount, r.Next, r.CreditAt = 12, 60, 7 })),
			usual(nil), 100, true, "id", 100, 12, 7},
		"next was once higher": {ptr(usual(func(r *Record) { r.WriteCount = 12 })),
			usual(func(r *Record) { r.WriteCount = 12 }), 500, true, "id", 500, 12, 0},
		"an older life": {ptr(usual(func(r *Record) {
			r.ID, r.WriteCount, r.Next = "old", 8,
				900
		})), usual(nil), 100, true, "id", 100, 10, 0},
		"a newer life": {ptr(usual(func(r *Record) { r.ID, r.WriteCount, r.Next = "new", 12, 5 })),
			usual(nil), 100, false, "new", 5, 12, 0},
		"a rival": {ptr(usual(rival)), usual(func(r *Record) { r.WriteCount = 12 }), 100, true, "id", 100, 12, 0},
		"a rival with a higher next": {ptr(usual(func(r *Record) { rival(r); r.Next = 130 })),
			usual(func(r *Record) { r.WriteCount = 12 }), 100, true, "id", 130, 12, 0},
		"a rival of an older life": {ptr(usual(rival)), usual(func(r *Record) { r.ID, r.WriteCount = "new", 12 }), 100,
			true, "new", 100, 12, 0},
		"a rival of a newer life": {ptr(usual(func(r *Record) { rival(r); r.ID, r.Above = "new", 500 })),
			usual(func(r *Record) { r.WriteCount = 12 }), 100, true, "new", 90, 12, 0},
		"a later incarnation with fewer writes": {ptr(usual(func(r *Record) {
			r.Incarnation, r.WriteCount, r.Next = 2, 3,
				900
		})), usual(nil), 100, false, "id", 900, 10, 0},
		"a later incarnation that does not know a raised next": {ptr(usual(func(r *Record) {
			r.Incarnation, r.Next, r.CreditAt = 2, 60, 7
		})), usual(nil), 100, true, "id", 100 + 5000 + 1000, 10, 7},
		"so, and too few positions are left": {ptr(usual(func(r *Record) { r.Incarnation, r.Next = 2, 60 })),
			usual(func(r *Record) { r.Max = 2000 }), 100, true, "id", 2000, 10, 0},
		"so, and strict": {ptr(usual(func(r *Record) { r.Mode, r.Incarnation, r.Next = Strict, 2, 60 })),
			usual(func(r *Record) { r.Mode = Strict }), 100, true, "id", 100, 10, 0},
	} {
		r, due := PutBack(c.found, c.known, c.highest, 2, 1000)
		if due != c.due || r.ID != c.id || r.Next != c.next || r.WriteCount != c.gen || r.CreditAt != c.at {
			t.Errorf("%s: %v, %+v", name, due, r)
		}
	}
}

// An operator has changed an old copy of the record, from before its hold was longer. The node keeps his change, and
// the longer hold.
func TestPutBackKeepsTheLongestHold(t *testing.T) {
	const hour, forever = 3_600_000, int64(Forever / time.Millisecond)
	hold := func(ms, earlier int64) Record {
		return usual(func(r *Record) { r.HoldMs, r.EarlierHoldMs = ms, earlier })
	}
	for name, c := range map[string]struct {
		found, known  Record
		due           bool
		hold, longest int64
	}{
		"a longer hold was lost":          {hold(1000, 0), hold(hour, 0), true, 1000, hour},
		"forever was lost":                {hold(1000, 0), hold(forever, 0), true, 1000, forever},
		"an earlier hold was lost":        {hold(1000, 0), hold(1000, hour), true, 1000, hour},
		"it is longer than before":        {hold(hour, 0), hold(1000, 0), false, hour, hour},
		"it was as long before the other": {hold(1000, hour), hold(hour, 0), false, 1000, hour},
	} {
		c.found.WriteCount = c.known.WriteCount + 2
		r, due := PutBack(&c.found, c.known, c.known.Next, 0, 0)
		if due != c.due || r.HoldMs != c.hold || r.LongestHoldMs() != c.longest {
			t.Errorf("%s: %v, hold %d, longest %d", name, due, r.HoldMs, r.LongestHoldMs())
		}
		if again, due := PutBack(&r, c.known, c.known.Next, 0, 0); due {
			t.Errorf("%s: put back again: %+v", name, again)
		}
		tombstone := c.found.Deleted(State{}, 5)
		r, due = PutBack(&tombstone, c.known, c.known.Next, 0, 0)
		if due != c.due || r.WaitMs != waitAfter(c.longest) {
			t.Errorf("%s, then deleted: %v, %+v", name, due, r)
		}
	}
}

// A node puts back what it knows of /seq, and lowers nothing.
func TestPutBackState(t *testing.T) {
	known := State{Cluster: "c", Changes: 5, Changed: []string{"a"}, Purged: 7, Time: 1000}
	for name, c := range map[string]struct {
		found *State
		want  State
		due   bool
	}{
		"missing": {nil, State{Cluster: "c", Changes: 5, Changed: []string{"a"}, Purged: 7, Time: 3000}, true},
		"older": {&State{Cluster: "c", Changes: 4, Time: 500},
			State{Cluster: "c", Changes: 5, Changed: []string{"a"}, Purged: 7, Time: 3000}, true},
		"more changes": {&State{Cluster: "c", Changes: 6, Changed: []string{"b"}, Purged: 7, Time: 500},
			State{Cluster: "c", Changes: 6, Changed: []string{"b"}, Purged: 7, Time: 3000}, true},
		"fewer purges": {&State{Cluster: "c", Changes: 6, Changed: []string{"b"}, Purged: 6, Time: 4000},
			State{Cluster: "c", Changes: 6, Changed: []string{"b"}, Purged: 7, Time: 4000}, true},
		"a later state": {&State{Cluster: "c", Changes: 6, Changed: []string{"b"}, Purged: 8, Time: 4000, PutIn: 4},
			State{Cluster: "c", Changes: 6, Changed: []string{"b"}, Purged: 8, Time: 4000}, false},
		"a node has told later that it puts back": {
			&State{Cluster: "c", Changes: 5, Changed: []string{"a"}, Purged: 7, Time: 4000, PutIn: 4, PutAt: ptr(int64(900))},
			State{Cluster: "c", Changes: 5, Changed: []string{"a"}, Purged: 7, Time: 4000, PutAt: ptr(int64(900))}, false},
	} {
		next, due := PutBackState(c.found, known, 4, 3000)
		c.want.Jumped, c.want.PutIn = c.want.Time, 4
		if due != c.due || !reflect.DeepEqual(next, c.want) {
			t.Errorf("%s: %+v, %v", name, next, due)
		}
	}
}

func TestHighestIssued(t *testing.T) {
	scattered := Record{Map: scattered(), Next: 0, Above: 7}
	for name, c := range map[string]struct {
		r    Record
		want int64
	}{
		"nothing was taken":       {usual(func(r *Record) { r.Next, r.Above = 0, -1 }), -1},
		"100 positions":           {usual(nil), 100},
		"an increment":            {usual(func(r *Record) { r.Increment = 3 }), 298},
		"an earlier life":         {usual(func(r *Record) { r.Above = 5000 }), 5000},
		"the last int64":          {usual(func(r *Record) { r.Max, r.Next = 1<<63-1, 1<<63-1 }), 1<<63 - 1},
		"a scattered life":        {Record{Map: scattered.Map, Next: 1}, 1 << 40},
		"an unused one":           {scattered, 7},
		"a template of such ones": {Record{Map: scattered.Map, MaxNames: 1}, 1 << 40},
	} {
		if got := c.r.HighestIssued(); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
