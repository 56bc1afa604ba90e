package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// flags are the node's flags that differ between the machines, and between the starts of one
// machine. Safety must not depend on them.
type flags struct {
	release bool // the node releases its worker when it stops cleanly

	mu    sync.Mutex // guards the fields below
	rng   *rand.Rand // for the flags of each start
	first bool       // the next start is the run's first one, which creates the cluster
}

// drawFlags draws the flags that stay the same for all starts of a machine.
func drawFlags(machine int) *flags {
	rng := rand.New(rand.NewPCG(*seed, 200+uint64(machine)))
	return &flags{release: rng.IntN(5) < 2, rng: rng, first: machine == 0}
}

// forStart returns the flags of one start, drawn at random. With a confirming time of confirm, a
// node accepts a heartbeat interval of at most slowest. The servers grant sessions of at most
// 10 s.
func (f *flags) forStart() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	drawn := []string{
		"--heartbeat", []time.Duration{slowest / 4, slowest / 2, slowest}[f.rng.IntN(3)].String(),
	}
	if f.first || f.rng.IntN(2) == 0 {
		drawn = append(drawn, "--bootstrap")
	}
	f.first = false
	if f.release {
		drawn = append(drawn, "--release-on-exit")
	}
	return drawn
}

// sessionTimeout returns the session timeout of one start, drawn at random.
func (f *flags) sessionTimeout() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []string{"2s", "6s", "30s"}[f.rng.IntN(3)]
}

func (f *flags) String() string {
	if f.release {
		return "released on exit"
	}
	return "kept on exit"
}

// stateFile returns the path of the machine's state file.
func (m *machine) stateFile() string { return filepath.Join(m.dir, "flaked.state") }

// leavesNothing returns a finding if a state file is left after a stop with --release-on-exit. A
// node could use a released worker again from such a file.
func (m *machine) leavesNothing() (wrong []string) {
	file := m.stateFile()
	if _, err := os.Stat(file); m.flags.release && !os.IsNotExist(err) {
		wrong = append(wrong, fmt.Sprintf("%s: its worker is released, and %s is still there (%v)", m.name(), file, err))
	}
	return wrong
}
