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

	"github.com/flaked/flaked/internal/faultdisk"
	"github.com/flaked/flaked/internal/faultnet"
	"github.com/flaked/flaked/internal/limits"
)

// kind is a kind of fault. Its run makes one: it injects, waits, and heals.
// An error is one of the campaign's own means.
type kind struct {
	name string
	// serves: the node has to go on answering with IDs all the while. atFirst: it
	// has to at first; run says from when on it need not.
	serves, atFirst bool
	// untilWell: a node that serves again may have to stop once more, until it is
	// connected as well, since its lease has ended: what was done to it comes out
	// by ZooKeeper. fromDisk: so may one that started from its directory while
	// ZooKeeper was away.
	untilWell, fromDisk bool
	// back is how soon after the fault it serves again, with nothing else amiss;
	// 0 is healthyWithin. registers: it needs a worker for that, which a freeze
	// of registration may keep from it.
	back      time.Duration
	registers bool
	// anew: it always becomes a new node. elects: ZooKeeper gets a new leader, or
	// its old one again by another election.
	anew, elects bool
	// least is the shortest it takes.
	least time.Duration
	run   func(x *attack) error
}

// attack is one fault in the making.
type attack struct {
	ctx   context.Context // ends with the time for faults: then heal
	rng   *rand.Rand
	kind  *kind
	m     *machine // nil: ZooKeeper
	c     *campaign
	fault *fault
}

// begin injects.
func (x *attack) begin(format string, args ...any) {
	node := -1
	if x.m != nil {
		node = x.m.id
	}
	x.fault = x.c.open(x.kind, node, fmt.Sprintf(format, args...))
}

// hold lets the fault last.
func (x *attack) hold(d time.Duration) { pass(x.ctx, d) }

// mayRefuse says that the node may from now on, and until it serves again.
func (x *attack) mayRefuse() { x.c.set(&x.fault.impaired) }

// bounded says that nothing pushes a bound any more, for as long as it takes:
// the node must serve for what it has left of it, and not beyond.
func (x *attack) bounded(bound time.Duration, until int64, lasts time.Duration) {
	x.c.mu.Lock()
	x.fault.bound, x.fault.stopped, x.fault.impaired = bound, x.c.now(), until
	x.c.mu.Unlock()
	x.hold(lasts)
	x.c.set(&x.fault.released)
}

// between draws a time, short ones as often as those ten times as long.
func (x *attack) between(low, high time.Duration) time.Duration {
	d := float64(low) * math.Pow(float64(high)/float64(low), x.rng.Float64())
	return time.Duration(d).Round(time.Millisecond)
}

// How soon a node is to serve again, where it has all that it needs.
const (
	atOnce  = time.Second           // what it holds is as good as before
	resumed = reserve + time.Second // as above, but what its predecessor had reserved
	settled = settle + 8*time.Second
	guessed = limits.BoundSlack + settled // half of its state was lost
)

// needsZooKeeper tells whether a node does, to serve again.
func (k *kind) needsZooKeeper() bool { return k.back >= settled && (!k.fromDisk || k.registers) }

// nodeKinds are what is done to one machine. release: its workers are given back when
// it stops cleanly.
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
		terminate = &kind{name: "SIGTERM, workers released, and restart", back: settled, registers: true, anew: true}
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
		{name: "SIGSTOP", untilWell: true, back: settled, least: time.Second, run: func(x *attack) error {
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
			return nil // it is slewed back with the next set
		}},
		{name: "clock back, up to 2 s", back: atOnce, least: time.Second, run: func(x *attack) error {
			d := x.between(6*time.Millisecond, 2*time.Second)
			x.begin("by %s", d)
			x.m.step(-d)
			x.hold(d + time.Second)
			x.m.set(x.m.base)
			return nil
		}},
		{name: "clock back, up to 1 h", back: settled, registers: true, least: 5 * time.Second, run: func(x *attack) error {
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
		// A clock that ran ahead and is set right: ZooKeeper agrees with the
		// new time, so the node takes a fresh slot.
		{name: "clock ahead by degrees, then right at once", atFirst: true, back: settled, registers: true, least: 4 * time.Second, run: func(x *attack) error {
			x.begin("by 3.6 s")
			for i := range 4 {
				if i == 1 {
					x.mayRefuse() // the bound on the disk is two seconds ahead, or three
				}
				x.m.step(900 * time.Millisecond)
				x.hold(300 * time.Millisecond)
			}
			x.hold(x.between(time.Second, 3*time.Second))
			x.m.set(x.m.base)
			return nil
		}},
		{name: "kill -9, clock back, restart", back: settled, least: time.Second, run: func(x *attack) error {
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

		{name: "state lost", back: settled, registers: true, anew: true, run: func(x *attack) error {
			x.begin("")
			x.m.stop(syscall.SIGKILL)
			defer x.m.start()
			return x.damage(os.Remove)
		}},
		{name: "state deleted under the process", atFirst: true, back: settled, registers: true, anew: true, run: func(x *attack) error {
			x.begin("")
			if err := x.damage(os.Remove); err != nil {
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
			if err := x.damage(func(file string) error { return os.Truncate(file, size) }); err != nil {
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
			return x.damage(func(file string) error { return spoil(file, at, how, x.rng) })
		}},
		{name: "state copied from another node", back: settled, registers: true, anew: true, run: func(x *attack) error {
			from := x.c.machines[(x.m.id+1+x.rng.IntN(len(x.c.machines)-1))%len(x.c.machines)]
			x.begin("from %s", from.name())
			data, err := os.ReadFile(from.stateFile())
			if err != nil {
				data = nil // the other's is just gone: an empty file then
			}
			x.m.stop(syscall.SIGKILL)
			defer x.m.start()
			return x.damage(func(file string) error {
				if err := os.Remove(file); err != nil {
					return err
				}
				return os.WriteFile(file, data, 0o600)
			})
		}},
		// Into the same file, so that its inode says nothing.
		{name: "an old copy of the state put back", atFirst: true, untilWell: true, back: settled, registers: true, run: func(x *attack) error {
			x.begin("")
			old := map[string][]byte{}
			for _, file := range x.m.stateFiles() {
				data, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				old[file] = data
			}
			x.hold(x.between(100*time.Millisecond, 3*time.Second))
			x.mayRefuse()
			x.m.stop(syscall.SIGKILL)
			defer x.m.start()
			return x.damage(func(file string) error { return os.WriteFile(file, old[file], 0o600) })
		}},
		{name: "a second process on the directory", serves: true, back: atOnce, run: func(x *attack) error {
			x.begin("")
			ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), 20*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, x.c.binary, x.m.args("unix:"+x.m.log.Name()+".sock")...)
			said, _ := cmd.CombinedOutput() // the code says it
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

// spoil damages a file: shortens it, or writes noise over a byte or a block.
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
