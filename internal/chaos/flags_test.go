package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// flags are those of a machine's node that differ between the machines, and between
// the starts of one. What is safe must not depend on them.
type flags struct {
	workers int  // how many it holds
	release bool // it gives them back when it stops cleanly

	mu    sync.Mutex // guards what follows
	rng   *rand.Rand // of the starts
	first bool       // the first start of all makes the cluster
}

// drawFlags draws what stays the same for all starts of a machine.
func drawFlags(machine int) *flags {
	rng := rand.New(rand.NewPCG(*seed, 200+uint64(machine)))
	return &flags{workers: 1 + rng.IntN(5)/3, release: rng.IntN(5) < 2, rng: rng, first: machine == 0}
}

// forStart draws the flags of one start. A heartbeat of slowest is the longest that a
// settling time of settle takes. The servers grant sessions of 10 s at most.
func (f *flags) forStart() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	drawn := []string{
		"--zk-session-timeout", []string{"2s", "6s", "30s"}[f.rng.IntN(3)],
		"--heartbeat", []time.Duration{slowest / 4, slowest / 2, slowest}[f.rng.IntN(3)].String(),
		"--sequence-start", []string{"random", "zero", "carry-on"}[f.rng.IntN(3)],
	}
	if f.first || f.rng.IntN(2) == 0 {
		drawn = append(drawn, "--bootstrap")
	}
	f.first = false
	if f.workers > 1 {
		drawn = append(drawn, "--workers", fmt.Sprint(f.workers))
	}
	if f.release {
		drawn = append(drawn, "--release-on-exit")
	}
	return drawn
}

func (f *flags) String() string {
	parts := []string{"1 worker"}
	if f.workers > 1 {
		parts[0] = fmt.Sprintf("%d workers", f.workers)
	}
	if f.release {
		parts = append(parts, "released on exit")
	}
	return strings.Join(parts, ", ")
}

// stateFile is that of the machine's first worker; stateFiles are those of all.
func (m *machine) stateFile() string { return m.stateFiles()[0] }

func (m *machine) stateFiles() []string {
	files := []string{filepath.Join(m.dir, "flaked.state")}
	for i := 2; i <= m.flags.workers; i++ {
		files = append(files, filepath.Join(m.dir, fmt.Sprintf("worker-%d", i), "flaked.state"))
	}
	return files
}

// damage does something to the state file of one of the machine's workers or of all.
func (x *attack) damage(do func(file string) error) error {
	files := x.m.stateFiles()
	if one := x.rng.IntN(len(files) + 1); one < len(files) && len(files) > 1 {
		x.c.note(x.m.name(), "only %s", files[one])
		x.fault.partial = true
		files = files[one : one+1]
	}
	for _, file := range files {
		if err := do(file); err != nil {
			return err
		}
	}
	return nil
}

// leavesNothing is what is wrong with a machine that has given its workers back: with
// --release-on-exit nothing may stay from which they could be used again.
func (m *machine) leavesNothing() (wrong []string) {
	for _, file := range m.stateFiles() {
		if _, err := os.Stat(file); m.flags.release && !os.IsNotExist(err) {
			wrong = append(wrong, fmt.Sprintf("%s: its workers are released, and %s is still there (%v)", m.name(), file, err))
		}
	}
	return wrong
}
