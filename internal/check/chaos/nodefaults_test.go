package chaos

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/faultdisk"
	"github.com/flaked/flaked/internal/testkit/faultnet"
)

// kind is a kind of fault.
type kind struct {
	name string
	// With serves, the node must answer with IDs during the whole fault. With atFirst, it
	// must do so until run calls mayRefuse, or until the bound of bounded has ended.
	serves, atFirst bool
	// With untilWell, a node that serves again may refuse once more until it is connected.
	// ZooKeeper may tell it only then that its lease has ended. With fromDisk this applies
	// only if ZooKeeper was away, so that the node started from its state directory alone.
	untilWell, fromDisk bool
	// back is the time after the end of the fault within which the node must serve again, if
	// there is no other fault. 0 means healthyWithin. With registers, the node needs a new
	// worker for that, and must wait while registration is frozen.
	back      time.Duration
	registers bool
	// least is the shortest duration of the fault.
	least time.Duration
	// run makes a fault: it injects the fault, waits and ends it. Its error means that the
	// campaign could not make the fault.
	run func(x *attack) error
}

// attack is one fault while run makes it.
type attack struct {
	ctx   context.Context // when it ends, run must end the fault
	rng   *rand.Rand
	kind  *kind
	m     *machine // nil for ZooKeeper
	c     *campaign
	fault *fault // nil before begin
}

// begin records the beginning of the fault. run calls it just before it injects the fault.
func (x *attack) begin(format string, args ...any) {
	node := -1
	if x.m != nil {
		node = x.m.id
	}
	x.fault = x.c.open(x.kind, node, fmt.Sprintf(format, args...))
}

// hold blocks for d, or until the time for faults is over.
func (x *attack) hold(d time.Duration) { pass(x.ctx, d) }

// mayRefuse records that the node may refuse from now on, until it serves again.
func (x *attack) mayRefuse() { x.c.set(&x.fault.impaired) }

// bounded blocks while a fault keeps the node from extending a bound, for the time lasts.
// The bound is at most bound ahead of the clock, and it ends at the time until. The node must
// serve before until, and must not issue timestamps above the bound.
func (x *attack) bounded(bound time.Duration, until int64, lasts time.Duration) {
	x.c.mu.Lock()
	x.fault.bound, x.fault.stopped, x.fault.impaired = bound, x.c.now(), until
	x.c.mu.Unlock()
	x.hold(lasts)
	x.c.set(&x.fault.released)
}

// between draws a duration from low to high. Its logarithm is uniformly distributed, so that
// short and long durations are drawn equally often.
func (x *attack) between(low, high time.Duration) time.Duration {
	d := float64(low) * math.Pow(float64(high)/float64(low), x.rng.Float64())
	return time.Duration(d).Round(time.Millisecond)
}

// These are the times within which a node must serve again, if ZooKeeper and a worker are
// available.
const (
	atOnce    = time.Second                   // its worker and its bounds are still valid
	resumed   = reserve + time.Second         // it waits for the end of the reserved bound
	confirmed = confirm + 8*time.Second       // it registers or confirms
	guessed   = limits.BoundSlack + confirmed // half of its state was lost
)

// needsZooKeeper reports whether a node needs ZooKeeper to serve again after the fault.
func (k *kind) needsZooKeeper() bool { return k.back >= confirmed && (!k.fromDisk || k.registers) }

// nodeKinds returns the kinds of faults of one machine. release says that the node releases its
// workers when it stops cleanly.
func nodeKinds(release bool) []*kind {
	links := func(name string, least, most time.Duration, cut func(*faultnet.Link)) *kind {
		return &kind{name: name, serves: true, back: atOnce, least: least, run: func(x *attack) error {
			d := x.between(least, most)
			x.begin("for %s", d)
			x.m.eachLink(cut)
			x.hold(d)
			x.m.eachLink((*faultnet.Link).Heal)
			return nil
		}}
	}
	disks := func(name string, fail, mend func(*faultdisk.Disk)) *kind {
		return &kind{name: name, atFirst: true, back: atOnce, least: 2 * time.Second, run: func(x *attack) error {
			d, until := x.between(2*time.Second, 15*time.Second), x.m.until("reserved_ms")
			x.begin("for %s", d)
			fail(x.m.disk)
			x.bounded(reserve, until, d)
			mend(x.m.disk)
			return nil
		}}
	}
	terminate := &kind{name: "SIGTERM and restart", fromDisk: true, back: atOnce}
	if release {
		terminate = &kind{name: "SIGTERM, workers released, and restart", back: confirmed, registers: true}
	}
	terminate.run = func(x *attack) error {
		x.begin("")
		x.m.stop(syscall.SIGTERM)
		x.m.start()
		return nil
	}
	return []*kind{
		{name: "kill -9", fromDisk: true, back: resumed, run: func(x *attack) error {
			x.begin("")
			x.m.stop(syscall.SIGKILL)
			x.m.start()
			return nil
		}},
		terminate,
		{name: "SIGSTOP", untilWell: true, back: confirmed, least: time.Second, run: func(x *attack) error {
			d := x.between(time.Second, time.Minute)
			x.begin("for %s", d)
			x.m.signal(syscall.SIGSTOP)
			x.hold(d)
			x.m.signal(syscall.SIGCONT)
			return nil
		}},

		{name: "clock back, up to 5 ms", serves: true, back: atOnce, run: func(x *attack) error {
			d := x.between(time.Millisecond, 5*time.Millisecond)
			x.begin("by %s", d)
			x.m.step(-d)
			return nil // the next fault of the clock sets it right
		}},
		{name: "clock back, up to 2 s", back: atOnce, least: time.Second, run: func(x *attack) error {
			d := x.between(6*time.Millisecond, 2*time.Second)
			x.begin("by %s", d)
			x.m.step(-d)
			x.hold(d + time.Second)
			x.m.set(x.m.base)
			return nil
		}},
		{name: "clock back, up to 1 h", back: confirmed, registers: true, least: 5 * time.Second, run: func(x *attack) error {
			d := x.between(3*time.Second, time.Hour)
			x.begin("by %s", d)
			x.m.step(-d)
			x.hold(x.between(5*time.Second, 10*time.Second))
			x.m.set(x.m.base)
			return nil
		}},
		{name: "clock ahead, up to 1 s", atFirst: true, back: atOnce, least: time.Second, run: func(x *attack) error {
			d := x.between(5*time.Millisecond, 950*time.Millisecond)
			x.begin("by %s, and back", d)
			x.m.step(d)
			x.hold(x.between(time.Second, 3*time.Second))
			x.mayRefuse()
			x.m.set(x.m.base)
			return nil
		}},
		{name: "clock ahead, 1 min to a year", serves: true, back: atOnce, least: 5 * time.Second, run: func(x *attack) error {
			d := x.between(time.Minute, 365*24*time.Hour)
			x.begin("by %s, and back", d)
			x.m.step(d)
			x.hold(x.between(5*time.Second, 10*time.Second))
			x.m.set(x.m.base)
			return nil
		}},
		// The clock runs ahead by less than a leap each time, and is then set right at
		// once. ZooKeeper agrees with the new time, so the node acquires a new worker.
		{name: "clock ahead by degrees, then right at once", atFirst: true, back: confirmed, registers: true, least: 4 * time.Second, run: func(x *attack) error {
			x.begin("by 3.6 s")
			for i := range 4 {
				if i == 1 {
					x.mayRefuse() // the reserved bound is 2 s to 3 s ahead
				}
				x.m.step(900 * time.Millisecond)
				x.hold(300 * time.Millisecond)
			}
			x.hold(x.between(time.Second, 3*time.Second))
			x.m.set(x.m.base)
			return nil
		}},
		{name: "kill -9, clock back, restart", back: confirmed, least: time.Second, run: func(x *attack) error {
			d := x.between(time.Second, time.Hour)
			x.begin("by %s", d)
			x.m.stop(syscall.SIGKILL)
			x.m.step(-d)
			x.m.start()
			x.hold(x.between(time.Second, 8*time.Second))
			x.m.set(x.m.base)
			return nil
		}},
		{name: "clock back, kill -9, clock right, restart", fromDisk: true, back: resumed, run: func(x *attack) error {
			d := x.between(time.Second, time.Hour)
			x.begin("by %s", d)
			x.m.step(-d)
			x.hold(x.between(time.Millisecond, time.Second))
			x.m.stop(syscall.SIGKILL)
			x.m.set(x.m.base)
			x.m.start()
			return nil
		}},

		links("cut off", time.Second, 20*time.Second, (*faultnet.Link).Cut),
		links("cut off by a black hole", time.Second, 20*time.Second, (*faultnet.Link).BlackHole),
		links("half-open", time.Second, 20*time.Second, (*faultnet.Link).HalfOpen),
		links("requests are lost", time.Second, 10*time.Second, (*faultnet.Link).DropRequests),
		links("answers are lost", time.Second, 10*time.Second, (*faultnet.Link).DropReplies),
		{name: "slow link", serves: true, back: atOnce, least: 2 * time.Second, run: func(x *attack) error {
			d := x.between(20*time.Millisecond, 2*time.Second)
			x.begin("by %s", d)
			x.m.eachLink(func(l *faultnet.Link) { l.Delay(d/2, d) })
			x.hold(x.between(2*time.Second, 10*time.Second))
			x.m.eachLink(func(l *faultnet.Link) { l.Delay(0, 0) })
			return nil
		}},
		{name: "resets", serves: true, back: atOnce, least: time.Second, run: func(x *attack) error {
			x.begin("")
			for range 20 {
				x.m.eachLink((*faultnet.Link).Reset)
				x.hold(x.between(20*time.Millisecond, 200*time.Millisecond))
			}
			return nil
		}},
		{name: "cut off beyond the lease", atFirst: true, least: *lease + 5*time.Second, run: func(x *attack) error {
			d, until := *lease+x.between(5*time.Second, 10*time.Second), x.m.until("lease_left_ms")
			x.begin("for %s", d)
			x.m.eachLink((*faultnet.Link).Cut)
			x.bounded(*lease, until, d)
			x.m.eachLink((*faultnet.Link).Heal)
			return nil
		}},

		{name: "state lost", back: confirmed, registers: true, run: func(x *attack) error {
			x.begin("")
			x.m.stop(syscall.SIGKILL)
			defer x.m.start()
			return os.Remove(x.m.stateFile())
		}},
		{name: "state deleted under the process", atFirst: true, back: confirmed, registers: true, run: func(x *attack) error {
			x.begin("")
			if err := os.Remove(x.m.stateFile()); err != nil {
				return err
			}
			x.hold(x.between(10*time.Millisecond, 2*time.Second))
			x.mayRefuse()
			x.m.stop(syscall.SIGKILL)
			x.m.start()
			return nil
		}},
		{name: "state truncated under the process", atFirst: true, back: guessed, registers: true, run: func(x *attack) error {
			size := x.rng.Int64N(8192)
			x.begin("to %d bytes", size)
			if err := os.Truncate(x.m.stateFile(), size); err != nil {
				return err
			}
			x.hold(x.between(10*time.Millisecond, 2*time.Second))
			x.mayRefuse()
			x.m.stop(syscall.SIGKILL)
			x.m.start()
			return nil
		}},
		{name: "state truncated or spoilt", fromDisk: true, back: guessed, registers: true, run: func(x *attack) error {
			at, how := x.rng.Int64N(8192), x.rng.IntN(3)
			x.begin("%s at %d", []string{"truncated", "a byte", "a block"}[how], at)
			x.m.stop(syscall.SIGKILL)
			defer x.m.start()
			return spoil(x.m.stateFile(), at, how, x.rng)
		}},
		{name: "state copied from another node", back: confirmed, registers: true, run: func(x *attack) error {
			from := x.c.machines[(x.m.id+1+x.rng.IntN(len(x.c.machines)-1))%len(x.c.machines)]
			x.begin("from %s", from.name())
			data, err := os.ReadFile(from.stateFile())
			if err != nil {
				data = nil // the other file was just removed: use an empty one
			}
			x.m.stop(syscall.SIGKILL)
			defer x.m.start()
			if err := os.Remove(x.m.stateFile()); err != nil {
				return err
			}
			return os.WriteFile(x.m.stateFile(), data, 0o600)
		}},
		// The old copy is written into the same file, so that its inode does not change.
		{name: "an old copy of the state put back", atFirst: true, untilWell: true, back: confirmed, registers: true, run: func(x *attack) error {
			x.begin("")
			old, err := os.ReadFile(x.m.stateFile())
			if err != nil {
				return err
			}
			x.hold(x.between(100*time.Millisecond, 3*time.Second))
			x.mayRefuse()
			x.m.stop(syscall.SIGKILL)
			defer x.m.start()
			return os.WriteFile(x.m.stateFile(), old, 0o600)
		}},
		{name: "a second process on the directory", serves: true, back: atOnce, run: func(x *attack) error {
			x.begin("")
			ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), 20*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, x.c.binary, x.m.args("unix:"+x.m.log.Name()+".sock")...)
			said, _ := cmd.CombinedOutput() // see the exit code
			if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(said), "in use") {
				x.c.violated(x.m.name(), "a second process on the state directory ended with %d: %s", code, said)
			}
			return nil
		}},

		{name: "disk full", serves: true, back: atOnce, least: 2 * time.Second, run: func(x *attack) error {
			d := x.between(2*time.Second, 10*time.Second)
			x.begin("for %s", d)
			x.m.disk.Fill()
			x.hold(d)
			x.m.disk.Free()
			return nil
		}},
		disks("disk read-only", (*faultdisk.Disk).ReadOnly, (*faultdisk.Disk).ReadWrite),
		disks("disk stalls", (*faultdisk.Disk).Freeze, (*faultdisk.Disk).Thaw),

		{name: "out of descriptors", serves: true, back: atOnce, least: 2 * time.Second, run: func(x *attack) error {
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
			if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(open)), Max: before.Max}, nil); err != nil {
				return err
			}
			for range 5 {
				if conn, err := net.DialTimeout("tcp", x.m.listen, time.Second); err == nil {
					defer conn.Close()
				}
			}
			x.hold(x.between(2*time.Second, 5*time.Second))
			return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil)
		}},
	}
}

// spoil damages a file at the offset at. how selects the damage: 0 truncates the file there,
// 1 overwrites a byte with noise, 2 a block of 512 bytes.
func spoil(path string, at int64, how int, rng *rand.Rand) error {
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
