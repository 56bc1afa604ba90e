package seq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flaked/flaked/internal/testkit/memdir"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// again begins a new process of a node on its directory. resumed: it has resumed its worker.
func (a *actor) again(resumed bool) {
	w, known := a.is.witness()
	count := a.is.issuer.JournalCount()
	a.restart()
	a.openJournal(a.dir)
	a.cluster.Resumed, a.cluster.Journal = resumed, count
	if known {
		a.is.recallWitness(w)
	}
}

// newJournaled returns a stage with a node that has a journal and has issued the values from 1 to 40 of order.
func newJournaled(t *testing.T) (*stage, *actor) {
	s := newStage(t)
	a := s.newNode()
	a.openJournal(&memDir{})
	s.run(stageConfirm + time.Second)
	s.create("order", plain(), settings(1000))
	for range 40 {
		a.ask("order", 1, false).first()
	}
	s.run(5 * time.Second) // it is quiet
	return s, a
}

// What the next process of a node issues first: the values that it held, or those of a new block.
func TestJournalGoesOn(t *testing.T) {
	const anew = int64(90)
	for name, c := range map[string]struct {
		end      func(*stage, *actor)
		copied   bool // the process has not resumed the worker
		from, to int64
	}{
		"killed":  {end: func(*stage, *actor) {}, from: 41, to: 43},
		"stopped": {end: func(_ *stage, a *actor) { _ = a.is.giveBack(context.Background()) }, from: 41, to: 41},
		"copied":  {end: func(*stage, *actor) {}, copied: true, from: anew, to: 1e6},
		"another identity": {
			end: func(_ *stage, a *actor) { a.cluster.Self = "other" }, from: anew, to: 1e6},
		"an older journal than the state file knows": {
			end: func(_ *stage, a *actor) { a.is.issuer.journal.count.Add(1) }, from: anew, to: 1e6},
		"an operator has raised the next value": {
			end: func(s *stage, _ *actor) { s.setNext("order", 5000) }, from: 5000, to: 5000},
		"the name was created again, as the witness file says, and the journal does not yet": {
			end: func(s *stage, a *actor) {
				s.remove("order")
				s.create("order", plain(), settings(1000))
				for range 3 {
					s.now += 4000
					_ = a.is.Round(context.Background())
				}
			},
			from: anew, to: 1e6},
		"the name was created again": {
			end:  func(s *stage, _ *actor) { s.remove("order"); s.create("order", plain(), settings(1000)) },
			from: anew, to: 1e6},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := newJournaled(t)
			c.end(s, a)
			a.again(!c.copied)
			if got := a.ask("order", 1, false).first(); got < c.from || got > c.to {
				t.Errorf("the next process issues %d first", got)
			}
		})
	}
}

// Without ZooKeeper, a process issues what an earlier one held within the hold, by a clock that counts over the
// restart.
func TestJournalWithoutZooKeeper(t *testing.T) {
	for name, c := range map[string]struct {
		boot        string
		quiet, away time.Duration // before and after the end of the process
		ok          bool
	}{
		"at once":             {boot: "boot", ok: true},
		"after a quiet time":  {boot: "boot", quiet: 20 * time.Minute, ok: true},
		"almost the hold":     {boot: "boot", away: 595*time.Second - time.Millisecond, ok: true},
		"the hold":            {boot: "boot", away: 600 * time.Second},
		"the machine started": {boot: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := newJournaled(t)
			s.run(c.quiet)
			a.calls = func(memzk.Call) memzk.Fault { return memzk.FailBefore }
			a.again(true)
			a.is.issuer.cfg.Boot = c.boot
			s.now += c.away.Milliseconds()
			got := a.ask("order", 1, false).finish()
			if ok := got.err == nil; ok != c.ok || ok && (got.runs[0].First < 41 || got.runs[0].First > 43) {
				t.Errorf("%v, %v", got.runs, got.err)
			}
			for k := 0; c.ok && k < 9; k++ { // the disk must follow, and no refusal of a new block counts
				if got := a.ask("order", 1, false).finish(); got.err != nil {
					t.Fatalf("after %d values: %v", k+1, got.err)
				}
			}
		})
	}
}

// If the journal can neither be written nor removed, nothing that it has is issued.
func TestJournalOnABrokenDisk(t *testing.T) {
	_, a := newJournaled(t)
	broken := errors.New("input/output error")
	a.dir.Fails = func([]byte) error { return broken }
	var last int64
	for range 10 {
		c := a.ask("order", 1, false).finish()
		if !c.done || c.err != nil {
			break
		}
		last = int64(c.runs[0].First)
	}
	if last == 0 || last > 43 {
		t.Errorf("it issues up to %d, and the journal begins at 43 or below", last)
	}
}

// A process that issues all that its journal has takes it out of that first.
func TestJournalIsEmptiedBeforeItsLastValuesAreIssued(t *testing.T) {
	_, a := newJournaled(t)
	a.calls = func(memzk.Call) memzk.Fault { return memzk.FailBefore }
	ask := func(n func() int64) *call {
		a.again(true)
		_ = a.is.Round(context.Background())
		c := a.ask("order", int(n()), true)
		a.is.issuer.saveJournal()
		return c.again()
	}
	all := ask(func() int64 { return a.is.issuer.series.byName["order"].segment().stock.Left() })
	if !all.done || all.err != nil {
		t.Fatal(all.done, all.err)
	}
	if again := ask(func() int64 { return 1 }); again.done && again.err == nil {
		t.Errorf("%v after %v", again.runs, all.runs)
	}
}

// Without ZooKeeper, a process does not issue what an operator has taken back, if the node has reported that it knows.
func TestJournalWithoutZooKeeperKnowsTheNextValue(t *testing.T) {
	s, a := newJournaled(t)
	s.setNext("order", 5000)
	for range 5 { // nobody asks for values, so the journal stays as it is
		s.now += 1000
		_ = a.is.Round(context.Background())
	}
	if f := a.is.issuer.Followed(); f.Last.Number < s.view("order").State.Changes {
		t.Fatal("the node has not reported the change")
	}
	a.calls = func(memzk.Call) memzk.Fault { return memzk.FailBefore }
	a.again(true)
	if got := a.ask("order", 1, false).finish(); got.err == nil && got.runs[0].First < 5000 {
		t.Errorf("%v", got.runs)
	}
}

// A request that waits for the disk is not refused because ZooKeeper is away.
func TestRequestsWaitForTheDiskWithoutZooKeeper(t *testing.T) {
	s, a := newJournaled(t)
	a.calls = func(memzk.Call) memzk.Fault { return memzk.FailBefore }
	s.run(2 * time.Second)
	for range 3 {
		var last *call
		for range 3 { // more than are below the bound
			last = a.ask("order", 1, false)
		}
		s.now += 3000
		_ = a.is.Round(context.Background()) // the disk is not so fast
		last.again()
		a.is.issuer.saveJournal()
		if last.again(); !last.done || last.err != nil {
			t.Errorf("%v, %v", last.done, last.err)
		}
	}
}

// If ZooKeeper goes away while a node stops, the journal keeps all that was not given back.
func TestStopKeepsWhatItCannotGiveBack(t *testing.T) {
	for _, op := range []string{"get", "multi"} {
		t.Run(op, func(t *testing.T) {
			s, a := newJournaled(t)
			s.create("other", plain(), settings(1000))
			a.ask("other", 1, false).first()
			s.run(5 * time.Second)
			ctx, cancel := context.WithCancel(context.Background())
			a.store.SetDone(func(c memzk.Call, _, _ error) {
				if c.Op == op && !c.More {
					cancel() // the time is over after the first sequence
				}
			})
			_ = a.is.giveBack(ctx)
			a.store.SetDone(nil)
			a.again(true)
			for name, want := range map[string]int64{"order": 41, "other": 2} {
				if got := a.ask(name, 1, false).first(); got != want {
					t.Errorf("%s goes on with %d", name, got)
				}
			}
		})
	}
}

// A block comes into the journal at once, although nobody asks for more values.
func TestJournalHasANewBlock(t *testing.T) {
	_, a := newJournaled(t)
	stock := &a.is.issuer.series.byName["order"].segment().stock
	a.ask("order", int(stock.Left()), false).first()
	<-a.is.issuer.journal.woken
	if err := a.is.Round(context.Background()); err != nil || stock.Left() == 0 {
		t.Fatal(err, stock.Left())
	}
	end := stock.Tail().End
	if len(a.is.issuer.journal.woken) > 0 {
		a.is.issuer.saveJournal()
	}
	a.calls = func(memzk.Call) memzk.Fault { return memzk.FailBefore }
	a.again(true)
	_ = a.is.Round(context.Background())
	if got := a.is.issuer.series.byName["order"].segment().stock.Tail().End; got != end {
		t.Errorf("the next process has positions up to %d, not %d", got, end)
	}
}

// Giving back ends although the disk hangs.
func TestGiveBackOnADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a := newJournaled(t)
		hangs := make(chan struct{})
		defer close(hangs)
		a.dir.Fails = func([]byte) error { <-hangs; return nil }
		ended := make(chan struct{})
		go func() {
			_ = a.is.giveBack(context.Background())
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Error("it hangs")
		}
	})
}

// A disk that takes no writes costs a restart the values that the node holds, and no more. When it takes writes again,
// the journal has what the node holds again, although nobody asks for values.
func TestJournalOnAFullDisk(t *testing.T) {
	s, a := newJournaled(t)
	a.dir.Fails = func(data []byte) error {
		if data == nil {
			return nil
		}
		return errors.New("no space left")
	}
	first := a.ask("order", 10, false).first()
	var again bool
	for range 5 {
		again = a.is.issuer.saveJournal()
		s.now += 1000
	}
	if a.dir.Fails = nil; len(a.dir.Files) > 0 || !again || a.is.issuer.DirError() == nil ||
		a.is.issuer.keepsForRestart() {
		t.Fatalf("the journal still has positions that were issued: %s, %v", a.dir.Files, again)
	}
	for s.now += 2000; again; s.now += 1000 {
		again = a.is.issuer.saveJournal()
	}
	if s.now += saveEvery.Milliseconds(); a.is.issuer.DirError() != nil || !a.is.issuer.keepsForRestart() {
		t.Error(a.is.issuer.DirError())
	}
	a.again(true)
	if got := a.ask("order", 1, false).first(); got < first+10 || got > first+12 {
		t.Errorf("%d after %d", got, first+9)
	}
}

// A sync of the journal fails, and the process is killed before it removes the file. The next process reads what the
// disk has not taken. After a power cut, the one after that must not issue what the process before has issued.
func TestJournalAfterASyncThatFailedAndAPowerCut(t *testing.T) {
	s := newStage(t)
	a, d := s.newNode(), &memdir.Paged{}
	a.cluster.Self = a.slot
	count := uint64(0)
	next := func() {
		w, known := a.is.witness()
		a.restart()
		a.is.issuer.journal = newJournal(d)
		a.is.findJournal()
		a.cluster.Resumed, a.cluster.Journal = true, count
		if known {
			a.is.recallWitness(w)
		}
		_ = a.round()
	}
	next()
	s.run(stageConfirm + time.Second)
	var names []string
	for k := range 80 { // more than a page
		names = append(names, fmt.Sprintf("order-%02d", k))
		s.create(names[k], plain(), settings(1000))
	}
	seen := map[string]bool{}
	ask := func() {
		t.Helper()
		for _, name := range names {
			value := fmt.Sprint(name, "=", a.ask(name, 1, false).first())
			if seen[value] {
				t.Fatalf("%s comes twice", value)
			}
			seen[value] = true
		}
	}
	for range 6 {
		ask()
	}
	s.run(5 * time.Second)
	count = a.is.issuer.JournalCount()
	for _, name := range names {
		x := a.is.issuer.series.byName[name]
		a.is.issuer.journal.wake(x, false)
		_, _ = x.segment().stock.Take(x.segment().stock.Free(), nil)
	}
	d.Broken = true
	a.is.issuer.saveJournal()
	d.Broken, d.Fails = false, nil
	next()
	ask()
	d.Files = maps.Clone(d.Disk) // the power fails
	next()
	for range 12 {
		ask()
	}
}

// Clients ask for names that do not exist, while the disk hangs: nothing keeps these names.
func TestUnknownNamesAreNotDueInTheJournal(t *testing.T) {
	s, a := newJournaled(t)
	for k := range 200 {
		a.ask(fmt.Sprint("no-", k), 1, false)
		s.now += 3000
		_ = a.is.Round(context.Background()) // the journal is not saved
	}
	if n := len(a.is.issuer.journal.changed); n > 1 {
		t.Errorf("%d are due", n)
	}
}

// What a node gives up leaves its journal, although nobody asks for values.
func TestWhatIsGivenUpLeavesTheJournal(t *testing.T) {
	for name, giveUp := range map[string]func(*stage, *actor){
		"dropped":   func(_ *stage, a *actor) { a.is.issuer.series.byName["order"].change(a.segmentOf("order").Drop) },
		"forgotten": func(_ *stage, a *actor) { a.is.follower.forgetCluster() },
		"raised": func(s *stage, a *actor) {
			a.calls = func(c memzk.Call) memzk.Fault { // it gets no new block
				return map[bool]memzk.Fault{true: memzk.FailBefore}[c.Op == "multi"]
			}
			s.setNext("order", 5000)
			a.followChanges(s)
		},
		"deleted": func(s *stage, a *actor) {
			s.remove("order")
			a.followChanges(s)
		},
		"created once more": func(s *stage, a *actor) {
			s.remove("order")
			s.create("order", plain(), settings(1000))
			a.followChanges(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := newJournaled(t)
			if len(journalIn(a.dir.Files[journalName]).held) != 1 {
				t.Fatal("the journal has nothing")
			}
			giveUp(s, a)
			if len(a.is.issuer.journal.woken) > 0 {
				a.is.issuer.saveJournal()
			}
			if held := journalIn(a.dir.Files[journalName]).held; len(held) > 0 {
				t.Errorf("the journal still has %s", held)
			}
		})
	}
}

func (a *actor) segmentOf(name string) *segment { return a.is.issuer.series.byName[name].segment() }

func (a *actor) followChanges(s *stage) {
	for range 3 {
		s.now += 4000
		_ = a.is.Round(context.Background())
	}
}
