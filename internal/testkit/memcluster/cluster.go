// Package memcluster is a cluster in memory, for tests: true time, a ZooKeeper whose leader has a clock, and machines
// with clocks and a disk. Tests add the nodes.
//
// Nothing here decides when time passes. A test that owns it moves it, and a test with goroutines takes the real one.
// Read Cluster, then Machine.
package memcluster

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/internal/testkit/memfile"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/localcache"
)

// Cluster is a ZooKeeper, and true time.
type Cluster struct {
	Mem *memzk.Server
	now func() int64
	// leader is the offset of the leader's clock from true time, ns.
	leader atomic.Int64
}

// New returns a cluster with an empty ZooKeeper. now returns true time, Unix ns.
func New(now func() int64) *Cluster {
	c := &Cluster{now: now}
	c.Mem = c.ZooKeeper()
	return c
}

// ZooKeeper returns another empty ZooKeeper, with the same leader's clock.
func (c *Cluster) ZooKeeper() *memzk.Server {
	return memzk.New(func() int64 { return (c.now() + c.leader.Load()) / 1e6 })
}

// Leap makes the leader's clock leap, as when another leader is elected whose clock differs.
func (c *Cluster) Leap(by time.Duration) { c.leader.Add(int64(by)) }

// Leads returns how far the leader's clock is ahead of true time.
func (c *Cluster) Leads() time.Duration { return time.Duration(c.leader.Load()) }

// Machine returns a new machine, whose clocks are right, with a blank disk.
func (c *Cluster) Machine() *Machine { return &Machine{Disk: memfile.New(nil), now: c.now} }

// Machine is the timeguard.Clock of its processes, and their disk.
type Machine struct {
	Disk *memfile.File
	// Print tells the disk from others, and Boots counts starts of the machine.
	Print localcache.Fingerprint
	Boots int

	now              func() int64
	mu               sync.Mutex // guards the clocks
	wall, boot, mono counter
}

// counter is a clock, in ns.
type counter struct {
	ahead int64 // of true time, at the time from
	from  int64 // true time
	// percent is the part of the time from then until the time until that the clock does not count. 100: it stands
	// still. Negative: it is fast.
	percent int64
	until   int64
	slow    int64 // what it does not count of all other time, in thousandths
}

func (c counter) at(now int64) int64 {
	until := max(c.from, min(now, c.until))
	return now + c.ahead - (until-c.from)*c.percent/100 - (now-until)*c.slow/1000
}

// set makes the clock show a time now. What it loses stays as it is.
func (c *counter) set(now, shows int64) { c.ahead, c.from = shows-now, now }

// lose makes the clock lose so many percent of the time from now on, for d.
func (c *counter) lose(now int64, d time.Duration, percent int64) {
	c.set(now, c.at(now))
	c.percent, c.until = percent, now+int64(d)
}

func (m *Machine) read(c *counter) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return c.at(m.now())
}

func (m *Machine) Wall() int64 { return m.read(&m.wall) }
func (m *Machine) Boot() int64 { return m.read(&m.boot) }
func (m *Machine) Mono() int64 { return m.read(&m.mono) }

// Skew returns how far the wall clock is ahead of true time.
func (m *Machine) Skew() time.Duration { return time.Duration(m.Wall() - m.now()) }

// SetSkew sets that.
func (m *Machine) SetSkew(skew time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.wall.until = 0
	m.wall.set(now, now+int64(skew))
}

// SetBoot makes the boot clock and the monotonic clock show a time, ns.
func (m *Machine) SetBoot(shows int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot.set(m.now(), shows)
	m.mono.set(m.now(), shows)
}

// SetRates says for good how much the boot clock, with the monotonic clock, and the wall clock count of a second of
// true time, in ms.
func (m *Machine) SetRates(boot, wall int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for c, rate := range map[*counter]int64{&m.boot: boot, &m.mono: boot, &m.wall: wall} {
		c.set(now, c.at(now))
		c.slow = 1000 - rate
	}
}

// Step makes the wall clock step.
func (m *Machine) Step(by time.Duration) { m.SetSkew(m.Skew() + by) }

// Sleep suspends the machine for d: its monotonic clock stands still.
func (m *Machine) Sleep(d time.Duration) { m.lose(d, 100, &m.mono) }

// Pause pauses a virtual machine for d, as a hypervisor does for a snapshot or a live migration: its boot clock stands
// still as well. Its wall clock is right again afterwards, or late until something sets it.
func (m *Machine) Pause(d time.Duration, late bool) {
	m.lose(d, 100, &m.mono, &m.boot)
	if late {
		m.lose(d, 100, &m.wall)
	}
}

// Pace makes the boot clock and the monotonic clock slow by so many percent for d, or fast.
func (m *Machine) Pace(percent int64, d time.Duration) { m.lose(d, percent, &m.mono, &m.boot) }

func (m *Machine) lose(d time.Duration, percent int64, clocks ...*counter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range clocks {
		c.lose(m.now(), d, percent)
	}
}

// Wake ends a standstill of the clocks. It reports whether the monotonic clock stood still.
func (m *Machine) Wake() (stood bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, c := range []*counter{&m.wall, &m.boot, &m.mono} {
		stood = c.percent == 100 && now < c.until // the monotonic clock is the last
		if stood {
			c.until = max(now, c.from)
		}
	}
	return stood
}

// Crash starts the machine again after a power cut: its disk may lose what was not synced, and its boot clock counts
// anew, from behind what it showed.
func (m *Machine) Crash(behind time.Duration) {
	m.Boots++
	m.mu.Lock()
	m.boot.ahead -= int64(behind)
	m.mu.Unlock()
	m.Disk.Crash()
}
