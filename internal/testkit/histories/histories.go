// Package histories plays random histories. Each is drawn from a seed, and the same seed gives the same history.
//
// The flags -sim.seed, -sim.first, -sim.count, -sim.dir and -sim.progress are for the test that calls Game.Run.
package histories

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seed     = flag.Uint64("sim.seed", 0, "play this history alone, and print it")
	first    = flag.Uint64("sim.first", 1, "the first history")
	count    = flag.Uint64("sim.count", 0, "how many histories to play; 0: what fits a test run")
	dir      = flag.String("sim.dir", "", "where to write the history that went wrong; nowhere if empty")
	progress = flag.Duration("sim.progress", 0, "how often to print the progress; 0: never")
)

// History is one course of events.
type History interface {
	// Text returns a line for each event.
	Text() string
	// Wrong returns the rule that the history has violated, and how. "": none.
	Wrong() string
	// Counts returns how much of each thing has happened.
	Counts() map[string]int
}

// Game is a kind of histories.
type Game struct {
	// Package has the test that plays them, and Flags has further flags that they need. Both are for people.
	Package, Flags string
	// File is the beginning of the names of files in -sim.dir.
	File string
	// Count is how many are played without -sim.count. Of says of which count the progress tells.
	Count uint64
	Of    string
	// Play plays the history of a seed.
	Play func(t *testing.T, seed uint64) History
	// Drawn matches those parts of a text that differ between runs of one seed. nil: there are none.
	Drawn *regexp.Regexp
}

// Total adds up the results of histories.
type Total struct {
	Histories int
	Counts    map[string]int

	mu     sync.Mutex // guards all fields
	began  time.Time
	seed   uint64 // of the first that failed, by number
	failed History
}

// Each returns how long a history took on average.
func (t *Total) Each() time.Duration {
	return (time.Since(t.began) / time.Duration(max(1, t.Histories))).Round(10 * time.Microsecond)
}

func (t *Total) add(seed uint64, h History) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Histories++
	for name, n := range h.Counts() {
		t.Counts[name] += n
	}
	if h.Wrong() != "" && (t.failed == nil || seed < t.seed) {
		t.seed, t.failed = seed, h
	}
}

// Run plays the history of -sim.seed and prints it, or as many as the flags say. It returns nil in the first case.
func (g Game) Run(t *testing.T) *Total {
	t.Helper()
	if *seed == 0 {
		return g.All(t)
	}
	h := g.Play(t, *seed)
	fmt.Fprint(os.Stderr, h.Text())
	if wrong := h.Wrong(); wrong != "" {
		t.Fatal(wrong)
	}
	return nil
}

// All plays as many histories as the flags say. If several violate a rule, it fails with that of the lowest seed,
// whichever was played first.
func (g Game) All(t *testing.T) *Total {
	t.Helper()
	n := g.Count
	if *count > 0 {
		n = *count
	}
	// Nearly all memory is garbage once its history is over: collect it less often.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	all := g.playAll(t, *first, n)
	h := all.failed
	if h == nil {
		return all
	}
	if *dir != "" {
		file := filepath.Join(*dir, fmt.Sprintf("%s-%d.txt", g.File, all.seed))
		if err := os.WriteFile(file, []byte(h.Text()), 0o644); err != nil {
			t.Error(err)
		}
		t.Logf("the history is in %s", file)
	}
	t.Fatalf("%s\nseed %d: %s\nplay it again: go test %s -run '^TestSimulation$' -sim.seed=%d%s", tail(h.Text()), all.seed,
		h.Wrong(), g.Package, all.seed, g.Flags)
	return nil
}

// tail returns the last 60 lines of a history.
func tail(text string) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= 60 {
		return text
	}
	return "...\n" + strings.Join(lines[len(lines)-60:], "")
}

// playAll plays n histories from the seed first on, on all processors. Once a history has
// failed, playAll plays only those of lower seeds.
func (g Game) playAll(t *testing.T, first, n uint64) *Total {
	all := &Total{began: time.Now(), Counts: map[string]int{}}
	var next, failed atomic.Uint64
	failed.Store(first + n)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				seed := first + next.Add(1) - 1
				if seed >= failed.Load() {
					return
				}
				h := g.Play(t, seed)
				all.add(seed, h)
				for h.Wrong() != "" {
					if was := failed.Load(); seed >= was || failed.CompareAndSwap(was, seed) {
						break
					}
				}
			}
		})
	}
	stop := g.report(all, *progress)
	workers.Wait()
	stop()
	return all
}

// report prints the progress at an interval, until stop is called. An interval of 0 means never.
func (g Game) report(all *Total, every time.Duration) (stop func()) {
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
				all.mu.Lock()
				fmt.Fprintf(os.Stderr, "%s: %d histories, %d %s, %s each\n", time.Since(all.began).Round(time.Second),
					all.Histories, all.Counts[g.Of], g.Of, all.Each())
				all.mu.Unlock()
			}
		}
	}()
	return func() { close(done); <-ended }
}

// SameSeed plays seeds alone and then beside each other. The same seed must give the same history, to the letter.
func (g Game) SameSeed(t *testing.T, seeds int) {
	text := func(h History) string {
		if g.Drawn == nil {
			return h.Text()
		}
		return g.Drawn.ReplaceAllString(h.Text(), "")
	}
	alone := make([]History, seeds)
	for i := range alone {
		alone[i] = g.Play(t, uint64(i)+1)
	}
	var beside sync.WaitGroup
	for i, one := range slices.Backward(alone) {
		beside.Go(func() {
			two := g.Play(t, uint64(i)+1)
			a, b := strings.Split(text(one), "\n"), strings.Split(text(two), "\n")
			if slices.Equal(a, b) && maps.Equal(one.Counts(), two.Counts()) {
				return
			}
			n := 0
			for n < min(len(a), len(b))-1 && a[n] == b[n] {
				n++
			}
			t.Errorf("seed %d: %d and %d lines, %v and %v; they part at\n%s\n%s", i+1, len(a), len(b), one.Counts(),
				two.Counts(), a[n], b[n])
		})
	}
	beside.Wait()
}
