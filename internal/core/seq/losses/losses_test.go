package losses

import (
	"reflect"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/timeguard"
)

// look is a read of /cluster and /seq, and what a node makes of it.
type look struct {
	after       time.Duration // since the look before
	incarnation int64
	state       *record.State // nil: missing
	beat        int64         // the incarnation that the last heartbeat knew
	unconfirmed bool
	want        Kind
	phase       phase // without its numbers
	due         bool  // all records must be read again. Then the node does so
}

// kind returns a phase without its numbers.
func kind(p phase) phase {
	switch p.(type) {
	case behind:
		return behind{}
	case puttingBackState:
		return puttingBackState{}
	case unsettled:
		return unsettled{}
	case settled:
		return settled{}
	}
	return p
}

// What a node learns of /cluster and /seq, and what it does about that. The confirming time is 10 s.
func TestPhases(t *testing.T) {
	const s, confirm = time.Second, 10 * time.Second
	first := &record.State{Cluster: "c", Time: 1000}
	lost := &record.State{Cluster: "c", Time: 900_000, PutIn: 1}
	told := func(putAt int64) *record.State {
		st := *lost
		st.PutAt = &putAt
		return &st
	}
	usual := look{state: first, want: Follows, phase: unsettled{}, due: true}
	stateUnknown, behind, unsettled, settled := stateUnknown{}, behind{}, unsettled{}, settled{}
	for title, looks := range map[string][]look{
		"the first node of a cluster creates /seq when its worker is confirmed": {
			{unconfirmed: true, want: Waits, phase: stateUnknown},
			{after: 9 * s, want: WritesState, phase: stateUnknown},
			usual,
			{after: 3 * s, state: first, want: Follows, phase: settled},
		},
		"a node that knows nothing waits for others after a loss": {
			{incarnation: 1, beat: 1, want: Waits, phase: stateUnknown},
			{incarnation: 1, beat: 1, after: 9 * s, want: Waits, phase: stateUnknown},
			{incarnation: 1, beat: 1, after: 9 * s, state: first, want: WritesState, phase: stateUnknown},
			{incarnation: 1, beat: 1, state: lost, want: Follows, phase: unsettled, due: true},
		},
		"another node has put /seq back": {
			{incarnation: 1, beat: 1, state: lost, want: Follows, phase: unsettled},
			{incarnation: 1, beat: 1, after: 9 * s, state: lost, want: Follows, phase: unsettled},
			{incarnation: 1, beat: 1, after: s, state: lost, want: Follows, phase: unsettled, due: true},
			{incarnation: 1, beat: 1, after: s, state: lost, want: Follows, phase: settled},
		},
		"a new node hears of one that puts back a short time ago": {
			{state: told(900_000 - 59_999), want: Follows, phase: unsettled},
			{after: 10 * s, state: told(900_000 - 59_999), want: Follows, phase: unsettled, due: true},
		},
		"a new node hears of one that has put back long ago": {
			{state: told(900_000 - 60_000), want: Follows, phase: unsettled, due: true},
		},
		"a loss": {
			usual,
			{after: s, incarnation: 1, state: nil, want: Waits, phase: behind},
			{after: s, incarnation: 1, beat: 1, state: nil, want: WritesState, phase: puttingBackState{}},
			{incarnation: 1, beat: 1, state: lost, want: Follows, phase: unsettled},
			{after: 7 * s, incarnation: 1, beat: 1, state: told(5), want: Follows, phase: unsettled}, // another tells
			{after: 9 * s, incarnation: 1, beat: 1, state: told(5), want: Follows, phase: unsettled},
			{after: 1 * s, incarnation: 1, beat: 1, state: told(5), want: Follows, phase: unsettled, due: true},
			{after: 9 * s, incarnation: 1, beat: 1, state: told(7), want: Follows, phase: unsettled}, // late
			{after: 10 * s, incarnation: 1, beat: 1, state: told(7), want: Follows, phase: unsettled, due: true},
			{after: 10 * s, incarnation: 1, beat: 1, state: told(7), want: Follows, phase: settled},
		},
		"a loss, and a second one before a heartbeat": {
			usual,
			{incarnation: 1, state: first, want: Waits, phase: behind},
			{incarnation: 2, beat: 1, state: first, want: Waits, phase: behind},
			{incarnation: 2, beat: 2, state: first, want: WritesState, phase: puttingBackState{}},
			{incarnation: 3, beat: 2, state: first, want: Waits, phase: behind},
		},
		"ZooKeeper has lost what nobody has noticed": {
			usual,
			{state: nil, want: ReportsLoss, phase: settled},
			{state: &record.State{Time: 999}, want: ReportsLoss, phase: settled},
			{incarnation: never, state: first, want: ReportsLoss, phase: settled},
		},
		"more changes than /seq has names of": {
			usual,
			{state: &record.State{Time: 1000, Changes: 1, Changed: []string{"a"}}, want: Follows, phase: settled},
			{state: &record.State{Time: 1000, Changes: 3, Changed: []string{"a"}}, want: Follows, phase: unsettled, due: true},
		},
	} {
		k, ns := New(), int64(0)
		for n, l := range looks {
			ns += int64(l.after)
			now := timeguard.Moment{Boot: ns, Wall: ns, Least: ns, Most: ns}
			v := Read{Snapshot: record.Snapshot{State: l.state}, Sent: now, Answered: now, Confirmed: !l.unconfirmed, Beat: l.beat}
			if l.incarnation != never {
				v.Cluster = &record.Cluster{UUID: "c", Incarnation: l.incarnation}
			}
			if v.State != nil {
				v.State = new(*v.State)
				v.State.Incarnation = l.incarnation
			}
			r := k.Observe(v, "c", confirm)
			due := k.MaySettle(now, confirm)
			if r.Kind != l.want || kind(k.phase) != l.phase || due != l.due {
				t.Errorf("%s, look %d: Reaction %d in phase %T, must read all: %v", title, n, r.Kind, k.phase, due)
			}
			if known := k.seq(); known != nil && k.Owes() != (known.state.Incarnation < k.incarnation) {
				t.Errorf("%s, look %d: knows /seq of incarnation %d in phase %T of incarnation %d", title, n,
					known.state.Incarnation, k.phase, k.incarnation)
			}
			if due {
				k.Settle()
			}
		}
	}
}

// A node tells that it still puts records back, unless it has just begun with few of them, and what it has put back.
func TestTells(t *testing.T) {
	const follow = 3 * time.Second
	for name, row := range map[string]struct {
		lost    int
		names   []string
		since   time.Duration // the node has entered the incarnation
		due     bool
		putAt   int64
		changes int64
	}{
		"nothing to tell":          {since: follow},
		"few, and it has begun":    {lost: 64, since: follow / 2},
		"many":                     {lost: 65, due: true, putAt: 7000},
		"few, and it takes longer": {lost: 1, since: follow/2 + 1, due: true, putAt: 8500},
		"what it has put back":     {names: []string{"a", "b"}, due: true, changes: 2},
		"both":                     {lost: 65, names: []string{"a"}, due: true, putAt: 7000, changes: 1},
	} {
		k := New()
		k.entered, k.phase = timeguard.Moment{}, unsettled{&seqRead{state: record.State{Time: 7000}}}
		next, due := k.Tells(row.lost, row.names, timeguard.Moment{Least: int64(row.since), Most: int64(row.since)}, follow)
		if due != row.due || next.ToldPutBack() != row.putAt || next.Changes != row.changes {
			t.Errorf("%s: %v, %+v", name, due, next)
		}
	}
}

// Other nodes may put records back for the confirming time, 10 s, since the later of two moments.
func TestPutBackLeft(t *testing.T) {
	at := func(ago time.Duration) timeguard.Moment { return timeguard.Moment{Least: -int64(ago)} }
	const s = time.Second
	for name, row := range map[string]struct {
		entered, heard timeguard.Moment
		want           time.Duration
	}{
		"nobody has lost data":         {longAgo, longAgo, 0},
		"a loss":                       {at(3 * s), longAgo, 7 * s},
		"another node has told since":  {at(9 * s), at(2 * s), 8 * s},
		"it had told before the loss":  {at(2 * s), at(9 * s), 8 * s},
		"the time is over":             {at(11 * s), at(10 * s), 0},
		"a new node hears of the last": {longAgo, at(0), 10 * s},
	} {
		k := State{entered: row.entered, heard: row.heard}
		if left := k.PutBackLeft(timeguard.Moment{}, 10*s); left != row.want {
			t.Errorf("%s: %s", name, left)
		}
	}
}

// The sequence time is raised by what has passed, 15 s at most, when it is 10 s old and somebody needs it.
func TestRaisedTime(t *testing.T) {
	for name, row := range map[string]struct {
		changes int64
		age     time.Duration
		due     bool
		time    int64
	}{
		"young":        {changes: 1, age: RaiseEvery - 1, time: 1000 + 9999},
		"due":          {changes: 1, age: RaiseEvery, due: true, time: 11_000},
		"long due":     {changes: 1, age: time.Hour, due: true, time: 16_000},
		"no sequences": {age: time.Hour, time: 16_000},
	} {
		k := State{phase: settled{&seqRead{state: record.State{Time: 1000, Changes: row.changes}, first: 5}}}
		next, due := k.RaisedTime(timeguard.Moment{Least: 5 + int64(row.age), Most: 1 << 60})
		if due != row.due || next.Time != row.time {
			t.Errorf("%s: %v, %d", name, due, next.Time)
		}
	}
}

// Nobody who is left has known /seq. What is there is older by what has passed on the leader's clock since it was
// written.
func TestPutBackUnknown(t *testing.T) {
	found := &record.State{Cluster: "c", Time: 1000, Changes: 3}
	for name, row := range map[string]struct {
		state  *record.State
		leader int64
		want   record.State
	}{
		"missing":         {nil, 9000, record.State{Cluster: "c", PutIn: 2}},
		"4 s have passed": {found, 9000, record.State{Cluster: "c", Time: 35_000, Jumped: 35_000, PutIn: 2, Changes: 3}},
		"the leader's clock went back": {found, 1000,
			record.State{Cluster: "c", Time: 31_000, Jumped: 31_000, PutIn: 2, Changes: 3}},
	} {
		v := Read{Leader: row.leader}
		v.Cluster, v.State, v.StateWritten = &record.Cluster{UUID: "c", Incarnation: 2}, row.state, 5000
		if got := putBackUnknown(v, "c"); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// An earlier process has saved what it knew. The next one waits again for what was left of the confirming time.
func TestRecalledKnowledge(t *testing.T) {
	k := Recall(Memory{State: record.State{Time: 7}}, 5)
	if left := k.PutBackLeft(timeguard.Moment{}, time.Hour); left != 0 || !k.HasSettled() || k.SeqTime(5) != 7 {
		t.Errorf("in the first incarnation: %+v, waits %s", k, left)
	}
	k = Recall(Memory{Incarnation: 1, Entered: &timeguard.Moment{Least: 3}}, 5)
	if left := k.PutBackLeft(timeguard.Moment{Least: 5}, 10); left != 8 || k.incarnation != 1 {
		t.Errorf("after a loss: %+v, waits %d ns", k, left)
	}
}

func TestJudgeState(t *testing.T) {
	known := record.State{Incarnation: 2, Changes: 5, Time: 1000}
	for name, c := range map[string]struct {
		cluster int64 // the incarnation of /cluster, never: it is missing
		found   *record.State
		known   *record.State
		owes    bool
		want    record.Finding
	}{
		"nothing is known":                     {2, nil, nil, false, record.Absent},
		"the first look":                       {2, &known, nil, false, record.Good},
		"the same":                             {2, &known, &known, false, record.Good},
		"a change":                             {2, &record.State{Changes: 6, Time: 1000}, &known, false, record.Good},
		"a later time":                         {2, &record.State{Changes: 5, Time: 1001}, &known, false, record.Good},
		"a later incarnation with few changes": {3, &record.State{}, &known, false, record.Later},
		"a later incarnation without a state":  {3, nil, &known, false, record.Later},
		"missing":                              {2, nil, &known, false, record.Lost},
		"an earlier incarnation":               {1, &record.State{Changes: 9, Time: 2000}, &known, false, record.Lost},
		"no cluster":                           {never, &known, &known, false, record.Lost},
		"fewer changes":                        {2, &record.State{Changes: 4, Time: 2000}, &known, false, record.Lost},
		"an earlier time":                      {2, &record.State{Changes: 6, Time: 999}, &known, false, record.Lost},
		"what is not compared yet":             {2, &record.State{}, &record.State{Incarnation: 1, Changes: 5}, true, record.Good},
	} {
		v := record.Snapshot{State: c.found}
		if c.cluster != never {
			v.Cluster = &record.Cluster{UUID: "c", Incarnation: c.cluster}
		}
		k := New()
		k.incarnation = 2
		if c.known != nil {
			k.phase = settled{&seqRead{state: *c.known}}
		}
		if c.owes {
			k.phase = behind{k.seq()}
		}
		if got := k.Finding(v); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}

// A node has put the time back, and another one has put it back further since. The first node may not take positions
// yet, so its read of that is not trusted, and shows older data at worst. It counts all the same: the next loss must
// not be skipped by what the first node knew.
func TestTimeOfASecondPutBack(t *testing.T) {
	at := func(ns int64) timeguard.Moment { return timeguard.Moment{Boot: ns, Wall: ns, Least: ns, Most: ns} }
	k := New()
	k.Learn(record.State{Time: 1000}, Reading{Time: 1000, Sent: at(5e9)}, at(5e9), true)
	k.Learn(record.State{Time: 70_000}, Reading{Time: 70_000, Sent: at(6e9)}, at(6e9), false)
	if time := k.seq().trusted.Time; time != 1000 {
		t.Errorf("counts from %d, perhaps a read of older data", time)
	}
	k.enter(1, at(66e9))
	k.fixTime(at(66e9), 0, 1)
	if least := k.phase.(puttingBackState).least; least < 160_000 {
		t.Errorf("puts back %d", least)
	}
}

// The time that is put back counts what has passed by the clock that shows most: the node's boot clock, its wall clock
// or that of ZooKeeper's leader. The leader counts from a heartbeat in the new incarnation on.
func TestTimeIsPutBackByThreeClocks(t *testing.T) {
	const s = time.Second
	for name, row := range map[string]struct {
		boot, wall, leader time.Duration // since the last read
		lacksHeartbeat     bool
		want               time.Duration // above the time that was read, and the margin
	}{
		"all agree":                    {boot: 60 * s, wall: 60 * s, leader: 60 * s, want: 60 * s},
		"the machine stood still":      {boot: 3 * s, wall: 60 * s, leader: 3 * s, want: 60 * s},
		"its wall clock is late, too":  {boot: 3 * s, wall: 3 * s, leader: 60 * s, want: 60 * s},
		"the boot clock is slow":       {boot: 51 * s, wall: 60 * s, leader: 60 * s, want: 60 * s},
		"the wall clock was set back":  {boot: 60 * s, wall: -600 * s, leader: 60 * s, want: 60 * s},
		"the leader's clock went back": {boot: 60 * s, wall: 60 * s, leader: -600 * s, want: 60 * s},
		"no heartbeat has followed":    {boot: 3 * s, wall: 3 * s, leader: 3 * s, lacksHeartbeat: true},
	} {
		m := memcluster.New(func() int64 { return 1e18 }).Machine()
		e := timeguard.NewElapsed(m)
		const leader = 7_000_000
		k := New()
		k.Learn(record.State{Time: 1000}, Reading{1000, e.Now(), leader}, e.Now(), true)
		m.SetBoot(m.Boot() + int64(row.boot))
		m.Step(row.wall)
		k.enter(2, e.Now())
		beat := int64(2)
		if row.lacksHeartbeat {
			beat = 1
		}
		fixed := k.fixTime(e.Now(), leader+row.leader.Milliseconds(), beat)
		want := puttingBackState{k.seq(), 1000 + (row.want + 2*record.MostRaise).Milliseconds()}
		if fixed == row.lacksHeartbeat || fixed && k.phase != want {
			t.Errorf("%s: puts back %+v: %v, want %d", name, k.phase, fixed, want.least)
		}
	}
}

// All nodes stand still for ten minutes. One reads the time, another one then raises it, and a third one counts on from
// there. After a loss the first one must put back a time above theirs: it knows of neither.
func TestTimeIsPutBackAboveRaisesAfterAPause(t *testing.T) {
	const pause = 10 * time.Minute
	k := State{phase: settled{&seqRead{state: record.State{Time: 1000}}}}
	raised := record.State{Time: k.SeqTime(int64(pause))}
	latest := raised.At(pause)
	if least := (Reading{Time: 1000}).atMost(timeguard.Moment{}, 0); least < latest {
		t.Errorf("puts back %d, another node counts %d", least, latest)
	}
}
