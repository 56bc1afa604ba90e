package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/timeguard"
)

// These are the times within which a node must serve again, if ZooKeeper and a worker are
// available.
const (
	atOnce    = time.Second                   // its worker and its bounds are still valid
	resumed   = reserve + time.Second         // it waits for the end of the reserved bound
	confirmed = confirm + 8*time.Second       // it registers or confirms
	guessed   = limits.BoundSlack + confirmed // half of its state was lost
)

// nodeKinds returns the kinds of faults of one machine. release says that the node releases its
// worker when it stops cleanly.
func nodeKinds(release bool) []*kind {
	return slices.Concat(processKinds(release), clockKinds(), linkKinds(), stateKinds(), diskKinds())
}

// lasting is a kind that is injected, lasts from least to most, and is healed.
func lasting(k kind, least, most time.Duration, inject, heal func(*machine)) *kind {
	k.least = least
	k.run = func(x *attack) error {
		d := x.between(least, most)
		x.begin("for %s", d)
		inject(x.m)
		x.hold(d)
		heal(x.m)
		return nil
	}
	return &k
}

func processKinds(release bool) []*kind {
	terminate := &kind{name: "SIGTERM and restart", fromDisk: true, back: atOnce}
	if release {
		terminate = &kind{name: "SIGTERM, workers released, and restart", back: confirmed, registers: true}
	}
	terminate.run = func(x *attack) error {
		x.begin("")
		return x.m.restarted(syscall.SIGTERM, nil)
	}
	return []*kind{
		{name: "kill -9", fromDisk: true, back: resumed, run: func(x *attack) error {
			x.begin("")
			return x.m.restarted(syscall.SIGKILL, nil)
		}},
		terminate,
		lasting(kind{name: "SIGSTOP", untilWell: true, back: confirmed}, time.Second, time.Minute,
			func(m *machine) { m.signal(syscall.SIGSTOP) }, func(m *machine) { m.signal(syscall.SIGCONT) }),
		{name: "a second process on the directory", serves: true, back: atOnce, run: (*attack).secondProcess},
		{name: "out of descriptors", serves: true, back: atOnce, least: 2 * time.Second,
			run: (*attack).outOfDescriptors},
	}
}

// secondProcess starts another process on the machine's state directory, which must wait, and end when it is stopped.
func (x *attack) secondProcess() error {
	x.begin("")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), 5*time.Second)
	defer cancel()
	x.m.mu.Lock()
	twin := *x.m.Node
	x.m.mu.Unlock()
	twin.Listen, twin.Flags = "unix:"+x.m.logFile+".sock", append(slices.Clone(twin.Flags), "--admin", "off")
	cmd := exec.CommandContext(ctx, x.c.binary, twin.Args()...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	said, _ := cmd.CombinedOutput() // see the exit code
	if code := cmd.ProcessState.ExitCode(); code != 0 || !strings.Contains(string(said), "in use") {
		x.c.violated(x.m.Name, "a second process on the state directory ended with %d: %s", code, said)
	}
	return nil
}

// outOfDescriptors lowers the process's limit to the descriptors that are open.
func (x *attack) outOfDescriptors() error {
	pid := x.m.pid()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		return err
	}
	x.begin("at %d", len(open))
	few := unix.Rlimit{Cur: uint64(len(open)), Max: before.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		return err
	}
	for range 5 {
		if conn, err := net.DialTimeout("tcp", x.m.Listen, time.Second); err == nil {
			defer conn.Close()
		}
	}
	x.holdFor(2*time.Second, 5*time.Second)
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil)
}

// stepped is a kind that steps the clock by low to high, and sets it right after least to most.
func stepped(k kind, sign, low, high, least, most time.Duration) *kind {
	k.least, k.back = least, max(k.back, atOnce)
	k.run = func(x *attack) error {
		d := x.between(low, high)
		x.begin("by %s", sign*d)
		x.m.step(sign * d)
		x.holdFor(least, most)
		if k.atFirst {
			x.mayRefuse()
		}
		x.m.right()
		return nil
	}
	return &k
}

func clockKinds() []*kind {
	const year = 365 * 24 * time.Hour
	return []*kind{
		{name: "clock back, up to 5 ms", serves: true, back: atOnce, run: func(x *attack) error {
			d := x.between(time.Millisecond, 5*time.Millisecond)
			x.begin("by %s", d)
			x.m.step(-d)
			return nil // the next fault of the clock sets it right
		}},
		stepped(kind{name: "clock back, up to 2 s"}, -1, 6*time.Millisecond, 2*time.Second, time.Second, 3*time.Second),
		stepped(kind{name: "clock back, up to 1 h", back: confirmed, registers: true}, -1, 3*time.Second, time.Hour,
			5*time.Second, 10*time.Second),
		stepped(kind{name: "clock ahead, up to 1 s", atFirst: true}, 1, 5*time.Millisecond, 950*time.Millisecond,
			time.Second, 3*time.Second),
		stepped(kind{name: "clock ahead, 1 min to a year", serves: true}, 1, time.Minute, year, 5*time.Second,
			10*time.Second),
		// The clock runs ahead by less than a leap each time, and is then set right at
		// once. ZooKeeper agrees with the new time, so the node acquires a new worker.
		{name: "clock ahead by degrees, then right at once", atFirst: true, back: confirmed, registers: true,
			least: 4 * time.Second, run: func(x *attack) error {
				x.begin("by 3.6 s")
				for i := range 4 {
					if i == 1 {
						x.mayRefuse() // the reserved bound is 2 s to 3 s ahead
					}
					x.m.step(900 * time.Millisecond)
					x.hold(300 * time.Millisecond)
				}
				x.holdFor(time.Second, 3*time.Second)
				x.m.right()
				return nil
			}},
		{name: "kill -9, clock back, restart", back: confirmed, least: time.Second, run: func(x *attack) error {
			d := x.between(time.Second, time.Hour)
			x.begin("by %s", d)
			err := x.m.restarted(syscall.SIGKILL, func() error { x.m.step(-d); return nil })
			x.holdFor(time.Second, 8*time.Second)
			x.m.right()
			return err
		}},
		{name: "clock back, kill -9, clock right, restart", fromDisk: true, back: resumed, run: func(x *attack) error {
			d := x.between(time.Second, time.Hour)
			x.begin("by %s", d)
			x.m.step(-d)
			x.holdFor(time.Millisecond, time.Second)
			return x.m.restarted(syscall.SIGKILL, func() error { x.m.right(); return nil })
		}},
	}
}

func linkKinds() []*kind {
	heal := func(m *machine) { m.Links.Heal() }
	links := func(name string, most time.Duration, cut func(*faultnet.Link)) *kind {
		return lasting(kind{name: name, serves: true, back: atOnce}, time.Second, most,
			func(m *machine) { m.Links.Each(cut) }, heal)
	}
	return []*kind{
		links("cut off", 20*time.Second, (*faultnet.Link).Cut),
		links("cut off by a black hole", 20*time.Second, (*faultnet.Link).BlackHole),
		links("half-open", 20*time.Second, (*faultnet.Link).HalfOpen),
		links("requests are lost", 10*time.Second, (*faultnet.Link).DropRequests),
		links("answers are lost", 10*time.Second, (*faultnet.Link).DropReplies),
		{name: "slow link", serves: true, back: atOnce, least: 2 * time.Second, run: func(x *attack) error {
			d := x.between(20*time.Millisecond, 2*time.Second)
			x.begin("by %s", d)
			x.m.Links.Each(func(l *faultnet.Link) { l.Delay(d/2, d) })
			x.holdFor(2*time.Second, 10*time.Second)
			x.m.Links.Each(func(l *faultnet.Link) { l.Delay(0, 0) })
			return nil
		}},
		{name: "resets", serves: true, back: atOnce, least: time.Second, run: func(x *attack) error {
			x.begin("")
			for range 20 {
				x.m.Links.Each((*faultnet.Link).Reset)
				x.holdFor(20*time.Millisecond, 200*time.Millisecond)
			}
			return nil
		}},
		{name: "cut off beyond the lease", atFirst: true, least: *chaosLease + 5*time.Second,
			run: func(x *attack) error {
				d, until := *chaosLease+x.between(5*time.Second, 10*time.Second), x.m.until("lease_left_ms")
				x.begin("for %s", d)
				x.m.Links.Cut()
				x.bounded(*chaosLease, until, d)
				x.m.Links.Heal()
				return nil
			}},
	}
}

func stateKinds() []*kind {
	// killed is a kind whose state file is changed while the process does not run.
	killed := func(k kind, change func(x *attack, file string) error) *kind {
		k.back, k.registers = max(k.back, confirmed), true
		k.run = func(x *attack) error {
			x.begin("")
			return x.m.restarted(syscall.SIGKILL, func() error { return change(x, x.m.StateFile()) })
		}
		return &k
	}
	// under is a kind whose state file is changed while the process runs. Then the process is killed.
	under := func(k kind, change func(x *attack, file string) error) *kind {
		k.atFirst, k.back, k.registers = true, max(k.back, confirmed), true
		k.run = func(x *attack) error {
			x.begin("")
			if err := change(x, x.m.StateFile()); err != nil {
				return err
			}
			x.holdFor(10*time.Millisecond, 2*time.Second)
			x.mayRefuse()
			return x.m.restarted(syscall.SIGKILL, nil)
		}
		return &k
	}
	remove := func(_ *attack, file string) error { return os.Remove(file) }
	// The journal of sequences alone is put back. The state file is written more often than the hold here.
	journal := func(x *attack) error {
		old, err := os.ReadFile(x.m.Journal())
		if err != nil {
			return nil // the node holds nothing at present
		}
		x.begin("")
		x.holdFor(5*time.Second, 10*time.Second)
		x.mayRefuse()
		return x.m.restarted(syscall.SIGKILL, func() error { return os.WriteFile(x.m.Journal(), old, 0o600) })
	}
	return []*kind{
		killed(kind{name: "state lost"}, remove),
		under(kind{name: "state deleted under the process"}, remove),
		under(kind{name: "state truncated under the process", back: guessed}, func(x *attack, file string) error {
			return os.Truncate(file, x.rng.Int64N(8192))
		}),
		killed(kind{name: "state truncated or spoilt", fromDisk: true, back: guessed},
			func(x *attack, file string) error {
				return spoil(file, x.rng)
			}),
		killed(kind{name: "state copied from another node"}, func(x *attack, file string) error {
			from := x.c.machines[(x.m.ID+1+x.rng.IntN(len(x.c.machines)-1))%len(x.c.machines)]
			data, err := os.ReadFile(from.StateFile())
			if err != nil {
				data = nil // the other file was just removed: use an empty one
			}
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.WriteFile(file, data, 0o600)
		}),
		{name: "an old copy of the journal put back", fromDisk: true, atFirst: true, back: resumed,
			least: 5 * time.Second, run: journal},
		// The old copy is written into the same file, so that its inode does not change.
		{name: "an old copy of the state put back", atFirst: true, untilWell: true, back: confirmed, registers: true,
			run: func(x *attack) error {
				x.begin("")
				old, err := os.ReadFile(x.m.StateFile())
				if err != nil {
					return err
				}
				copied := timeguard.System().Boot()
				x.holdFor(100*time.Millisecond, 3*time.Second)
				x.mayRefuse()
				return x.m.restarted(syscall.SIGKILL, func() error {
					return errors.Join(x.m.tracePutBack(copied), os.WriteFile(x.m.StateFile(), old, 0o600))
				})
			}},
	}
}

// spoil truncates a file at a random offset, or writes noise there: a byte, or a block of 512 bytes.
func spoil(path string, rng *rand.Rand) error {
	at, how := rng.Int64N(8192), rng.IntN(3)
	if how == 0 {
		return os.Truncate(path, at)
	}
	noise := make([]byte, []int64{0, 1, 512}[how])
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(noise, at)
	return err
}

func diskKinds() []*kind {
	// failing is a kind that lets no reserved bound be written.
	failing := func(name string, fail, mend func(*machine)) *kind {
		return &kind{name: name, atFirst: true, back: atOnce, least: 2 * time.Second, run: func(x *attack) error {
			d, until := x.between(2*time.Second, 15*time.Second), x.m.until("reserved_ms")
			x.begin("for %s", d)
			fail(x.m)
			x.bounded(reserve, until, d)
			mend(x.m)
			return nil
		}}
	}
	return []*kind{
		lasting(kind{name: "disk full", serves: true, back: atOnce}, 2*time.Second, 10*time.Second,
			func(m *machine) { m.Disk.Fill() }, func(m *machine) { m.Disk.Free() }),
		{name: "disk full, kill -9, restart", fromDisk: true, back: resumed, run: func(x *attack) error {
			x.begin("")
			x.m.Disk.Fill()
			x.holdFor(10*time.Millisecond, 2*time.Second)
			err := x.m.restarted(syscall.SIGKILL, nil)
			x.holdFor(time.Second, 10*time.Second)
			x.m.Disk.Free()
			return err
		}},
		failing("disk read-only", func(m *machine) { m.Disk.ReadOnly() }, func(m *machine) { m.Disk.ReadWrite() }),
		failing("disk stalls", func(m *machine) { m.Disk.Freeze() }, func(m *machine) { m.Disk.Thaw() }),
	}
}
