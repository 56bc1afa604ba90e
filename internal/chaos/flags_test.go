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

// flags are the node's flags that differ between the machines, and between the starts of one
// machine. Safety must not depend on them.
type flags struct {
	workers int  // the number of workers that the node holds
	release bool // the node releases its workers when it stops cleanly

	mu    sync.Mutex // guards the fields below
	rng   *rand.Rand // for the flags of each start
	first bool       // the next start is the run's first one, which creates the cluster
}

// drawFlags draws the flags that stay the same for all starts of a machine.
func drawFlags(machine int) *flags {
	rng := rand.New(rand.NewPCG(*seed, 200+uint64(machine)))
	return &flags{workers: 1 + rng.IntN(5)/3, release: rng.IntN(5) < 2, rng: rng, first: machine == 0}
}

// forStart returns the flags of one start, drawn at random. With a confirming time of confirm, a
// node accepts a heartbeat interval of at most slowest. The servers grant sessions of at most
// 10 s.
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

// stateFile returns the path of the state file of the machine's first worker. stateFiles
// returns those of all its workers.
func (m *machine) stateFile() string { return m.stateFiles()[0] }

func (m *machine) stateFiles() []string {
	files := []string{filepath.Join(m.dir, "flaked.state")}
	for i := 2; i <= m.flags.workers; i++ {
		files = append(files, filepath.Join(m.dir, fmt.Sprintf("worker-%d", i), "flaked.state"))
	}
	return files
}

// damage calls do for the state file of one of the machine's workers or of all, at random. For
// one of several it sets fault.partial.
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

// leavesNothing returns a finding for each state file that is left after a stop with
// --release-on-exit. A node could use a released worker again from such a file.
func (m *machine) leavesNothing() (wrong []string) {
	for _, file := range m.stateFiles() {
		if _, err := os.Stat(file); m.flags.release && !os.IsNotExist(err) {
			wrong = append(wrong, fmt.Sprintf("%s: its workers are released, and %s is still there (%v)", m.name(), file, err))
		}
	}
	return wrong
}
