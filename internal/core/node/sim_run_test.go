package node

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flaked/flaked/internal/testkit/race"
)

var (
	simSeed     = flag.Uint64("sim.seed", 0, "play this history alone, and print it")
	simFirst    = flag.Uint64("sim.first", 1, "the first history")
	simCount    = flag.Int("sim.count", 0, "how many histories to play; 0: what fits a test run")
	simWorld    = flag.String("sim.world", "", "which of the other worlds to play in")
	simIDs      = flag.Bool("sim.ids", false, "judge by the IDs alone, not by the rules that keep them apart")
	simDir      = flag.String("sim.dir", "", "where to write the history that went wrong; nowhere if empty")
	simProgress = flag.Duration("sim.progress", 0, "how often to print the progress; 0: never")
)

// simActions is how many actions a history has. A change of it changes the history of each seed.
const simActions = 60

// play plays the history of a seed. Contexts and timers of the code under test use the time of a synctest bubble, which
// stands still while anything runs. So no history depends on the speed of the machine.
func play(t *testing.T, seed uint64) *sim { return playAs(t, seed, named(t, *simWorld)) }

// playAs plays the history of a seed in a world that change has modified.
func playAs(t *testing.T, seed uint64, change func(*world)) *sim {
	var s *sim
	synctest.Test(t, func(*testing.T) {
		s = newSim(seed)
		change(&s.world)
		s.found()
		s.idsOnly = *simIDs
		defer func() {
			if r := recover(); r != nil {
				s.violated(wrongSim, "panic: %v\n%s", r, debug.Stack())
			}
		}()
		s.run(simActions)
	})
	return s
}

func (s *sim) text() string {
	var b strings.Builder
	for _, l := range s.history {
		b.WriteString(l.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// tail returns the last 60 lines of a history.
func tail(text string) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= 60 {
		return text
	}
	return "...\n" + strings.Join(lines[len(lines)-60:], "")
}

func replay(seed uint64) string {
	text := fmt.Sprintf("go test ./internal/core/node -run '^TestSimulation$' -sim.seed=%d", seed)
	if *simWorld != "" {
		text += " -sim.world='" + *simWorld + "'"
	}
	return text
}

// TestSimulation plays histories. If several violate a rule, it reports the one with the lowest
// seed, whichever was played first.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		s := play(t, *simSeed)
		fmt.Fprint(os.Stderr, s.text())
		if s.wrong != "" {
			t.Fatal(s.wrong)
		}
		return
	}
	count := *simCount
	if count == 0 {
		count = 600
		if race.Enabled { // one goroutine: the detector only costs time
			count = 40
		}
	}
	// Nearly all memory is garbage once its history is over: collect it less often.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	total := playAll(t, named(t, *simWorld), *simFirst, uint64(count))
	if total.failed != nil {
		s := total.failed
		text := s.text()
		if *simDir != "" {
			file := filepath.Join(*simDir, fmt.Sprintf("history-%d.txt", total.seed))
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Error(err)
			}
			t.Logf("the history is in %s", file)
		}
		t.Fatalf("%s\nseed %d: %s\nplay it again: %s", tail(text), total.seed, s.wrong, replay(total.seed))
	}
	t.Logf("%d histories, %d IDs, %s each", total.histories, total.ids, total.each())
	if total.ids == 0 && count >= 50 {
		t.Error("no node has issued an ID")
	}
	for _, st := range scenarios {
		n := total.played[st.name]
		t.Logf("%6d x %s", n, st.name)
		if n == 0 && count >= 500 && *simWorld == "" {
			t.Errorf("no history came to: %s", st.name)
		}
	}
}

// total adds up the results of histories.
type total struct {
	mu        sync.Mutex // guards the rest
	began     time.Time
	histories int
	ids       int
	ahead     int
	rolled    int
	played    map[string]int
	seed      uint64 // of the first that failed, by number
	failed    *sim
}

func (t *total) each() time.Duration {
	return (time.Since(t.began) / time.Duration(max(1, t.histories))).Round(10 * time.Microsecond)
}

func (t *total) add(seed uint64, s *sim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.histories++
	t.ids += s.ids
	t.ahead += s.ahead
	t.rolled += s.rolled
	for name, n := range s.played {
		t.played[name] += n
	}
	if s.wrong != "" && (t.failed == nil || seed < t.seed) {
		t.seed, t.failed = seed, s
	}
}

// playAll plays count histories from the seed first on, on all processors. Once a history has
// failed, playAll plays only those of lower seeds.
func playAll(t *testing.T, change func(*world), first, count uint64) *total {
	all := &total{began: time.Now(), played: make(map[string]int)}
	var next, failed atomic.Uint64
	failed.Store(first + count)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				seed := first + next.Add(1) - 1
				if seed >= failed.Load() {
					return
				}
				s := playAs(t, seed, change)
				all.add(seed, s)
				for s.wrong != "" {
					if was := failed.Load(); seed >= was || failed.CompareAndSwap(was, seed) {
						break
					}
				}
			}
		})
	}
	stop := all.report(*simProgress)
	workers.Wait()
	stop()
	return all
}

// report prints the progress at an interval, until stop is called. An interval of 0 means never.
func (t *total) report(every time.Duration) (stop func()) {
	if every <= 0 {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				t.mu.Lock()
				fmt.Fprintf(os.Stderr, "%s: %d histories, %d IDs, %s each\n", time.Since(t.began).Round(time.Second),
					t.histories, t.ids, t.each())
				t.mu.Unlock()
			}
		}
	}()
	return func() { close(done); <-ended }
}

// TestSameSeedGivesTheSameHistory plays seeds alone and then beside each other. The same seed must give
// the same history, to the letter.
func TestSameSeedGivesTheSameHistory(t *testing.T) {
	const seeds = 16
	var alone [seeds]*sim
	for i := range alone {
		alone[i] = play(t, uint64(i)+1)
	}
	var beside sync.WaitGroup
	for i, one := range slices.Backward(alone[:]) {
		beside.Go(func() {
			two := play(t, uint64(i)+1)
			a, b := strings.Split(one.text(), "\n"), strings.Split(two.text(), "\n")
			if slices.Equal(a, b) && one.ids == two.ids {
				return
			}
			n := 0
			for n < min(len(a), len(b))-1 && a[n] == b[n] {
				n++
			}
			t.Errorf("seed %d: %d and %d lines, %d and %d IDs; they part at\n%s\n%s", i+1, len(a), len(b), one.ids,
				two.ids, a[n], b[n])
		})
	}
	beside.Wait()
}
