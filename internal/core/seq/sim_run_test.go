package seq

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The flags have the names of those in node, so that `make chaos-sim` gives both the same ones.
var (
	simSeed     = flag.Uint64("sim.seed", 0, "play this history alone, and print it")
	simFirst    = flag.Uint64("sim.first", 1, "the first history")
	simCount    = flag.Uint64("sim.count", 100, "how many histories to play")
	simStaged   = flag.Int("sim.staged", 0, "play so many scenarios in each history, and nothing else")
	simDir      = flag.String("sim.dir", "", "where to write the history that went wrong; nowhere if empty")
	simProgress = flag.Duration("sim.progress", 0, "how often to print the progress; 0: never")
)

// TestSimulation plays random histories of nodes that take blocks, with faults, and checks that no
// value is issued twice, that each node's values ascend, and that the ceiling holds. If several violate a
// rule, it reports the one with the lowest seed, whichever was played first.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		h := playHistory(*simSeed)
		fmt.Fprintln(os.Stderr, h.text())
		if h.wrong != "" {
			t.Fatal(h.wrong)
		}
		return
	}
	total := playAll(*simFirst, *simCount)
	h := total.failed
	if h == nil {
		t.Logf("%d histories, %d positions, %d losses of data, %s each", total.histories, total.issued, total.losses,
			total.each())
		return
	}
	if *simDir != "" {
		file := filepath.Join(*simDir, fmt.Sprintf("sequences-%d.txt", h.seed))
		if err := os.WriteFile(file, []byte(h.text()), 0o644); err != nil {
			t.Error(err)
		}
		t.Logf("the history is in %s", file)
	}
	last := h.log[max(0, len(h.log)-60):]
	t.Fatalf("%s\nseed %d: %s\nplay it again: go test ./internal/core/seq -run '^TestSimulation$' -sim.seed=%d",
		strings.Join(last, "\n"), h.seed, h.wrong, h.seed)
}

// playHistory plays the history of a seed.
func playHistory(seed uint64) (h *history) {
	h = newHistory(seed)
	defer h.removeBase()
	defer func() {
		if r := recover(); r != nil {
			h.violated("panic", "%v\n%s", r, debug.Stack())
		}
	}()
	h.play()
	return h
}

func (h *history) text() string { return strings.Join(h.log, "\n") }

// simTotal adds up the results of histories.
type simTotal struct {
	mu                        sync.Mutex // guards the rest
	began, printed            time.Time
	histories, issued, losses int
	failed                    *history // of those that failed, the one with the lowest seed
}

func (t *simTotal) add(h *history) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.histories, t.issued, t.losses = t.histories+1, t.issued+h.issued, t.losses+len(h.lostAt)
	if h.wrong != "" && (t.failed == nil || h.seed < t.failed.seed) {
		t.failed = h
	}
	if every := *simProgress; every > 0 && time.Since(t.printed) >= every {
		t.printed = time.Now()
		fmt.Fprintf(os.Stderr, "%s: %d histories, %d positions, %s each\n", time.Since(t.began).Round(time.Second),
			t.histories, t.issued, t.each())
	}
}

func (t *simTotal) each() time.Duration {
	return (time.Since(t.began) / time.Duration(max(1, t.histories))).Round(10 * time.Microsecond)
}

// playAll plays count histories from the seed first on, on all processors, until one fails.
func playAll(first, count uint64) *simTotal {
	all := &simTotal{began: time.Now(), printed: time.Now()}
	var next atomic.Uint64
	var failed atomic.Bool
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for !failed.Load() {
				n := next.Add(1) - 1
				if n >= count {
					return
				}
				h := playHistory(first + n)
				if all.add(h); h.wrong != "" {
					failed.Store(true)
				}
			}
		})
	}
	workers.Wait()
	return all
}

// nonces matches what operators draw at random: IDs of sequences and nonces.
var nonces = regexp.MustCompile(`"[0-9a-f]{16}"|/seq/k/[0-9a-f]{16}`)

// The same seed must give the same history, alone or beside others.
func TestSameSeedGivesTheSameHistory(t *testing.T) {
	var beside sync.WaitGroup
	for seed := range uint64(8) {
		one := playHistory(seed + 1)
		beside.Go(func() {
			two := playHistory(seed + 1)
			if a, b := nonces.ReplaceAllString(one.text(), ""), nonces.ReplaceAllString(two.text(), ""); a != b ||
				one.issued != two.issued {
				t.Errorf("seed %d: %d and %d lines, %d and %d positions", seed+1, len(one.log), len(two.log),
					one.issued, two.issued)
			}
		})
	}
	beside.Wait()
}
