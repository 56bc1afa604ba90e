package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lateness is how late the campaign's machine was, by a timer or by a disk without faults.
// Time limits of the checks are extended by it.
type lateness struct {
	at int64
	by time.Duration
}

const (
	paceEvery = 10 * time.Millisecond
	usual     = 5 * time.Millisecond
)

func (c *campaign) wasLate(at int64, by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delays = append(c.delays, lateness{at, by})
}

// every calls do at an interval until the run is over.
func (c *campaign) every(interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-c.playing.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// watch records the lateness of a timer until the run is over.
func (c *campaign) watch() {
	before := c.now()
	c.every(paceEvery, func() {
		now := c.now()
		if by := time.Duration(now-before) - paceEvery; by > usual {
			c.wasLate(now, by)
		}
		before = now
	})
}

// syncs is the longest usual time for a write and a sync of the disk. It is also the interval
// between them.
const syncs = 100 * time.Millisecond

// watchDisk writes and syncs a block again and again, like a node, until the run is over. It
// records each time that exceeds syncs.
func (c *campaign) watchDisk(path string) {
	f, err := os.Create(path)
	if err != nil {
		c.violated("campaign", "the disk cannot be watched: %v", err)
		return
	}
	defer f.Close()
	c.every(syncs, func() {
		began := c.now()
		_, err := f.WriteAt(make([]byte, 4096), 0)
		if err == nil {
			err = unix.Fdatasync(int(f.Fd()))
		}
		if err != nil {
			c.violated("campaign", "the disk cannot be watched: %v", err)
		}
		ended := c.now()
		if by := time.Duration(ended-began) - syncs; by > 0 {
			c.note("machine", "its disk took %s", short(by+syncs))
			c.wasLate(ended, by)
		}
	})
}

// late returns the sum of the timer's and the disk's lateness between from and to.
func (c *campaign) late(from, to int64) (sum time.Duration) {
	for _, l := range c.delays {
		if l.at >= from && l.at-int64(l.by) <= to {
			sum += l.by
		}
	}
	return sum
}

// margin extends the time limits on a machine that was never late. It covers the start of the
// process and the intervals at which the campaign polls.
const margin = 2 * time.Second

const (
	// wellWithin is the time within which a node that serves must be connected, if there is
	// no other fault.
	wellWithin = 20 * time.Second
	// looksFor is the time that a start from the state directory spends waiting for a
	// ZooKeeper that is away or that disconnects meanwhile.
	looksFor = 1500*time.Millisecond + 5*time.Second
)

// recoveries records a finding for each node that took too long to serve again, and returns a
// summary. It leaves out a fault if the node then needed ZooKeeper while it was away, or a new
// worker while registration was frozen. It also leaves out a fault if most clocks may have been
// wrong.
func (c *campaign) recoveries() string {
	tracks, all, held := c.tracks(), 0, 0
	for _, f := range c.faults {
		if f.node < 0 || f.well == 0 {
			continue
		}
		all++
		away, back := c.away(f.injected, f.well), f.kind.back
		switch {
		case back == 0,
			away && f.kind.needsZooKeeper(),
			f.kind.registers && c.frozen(f.injected, f.well),
			!f.kind.serves && c.outvoted(tracks, f.node, f.injected, f.well):
			continue
		case away && f.kind.fromDisk:
			back += looksFor
		}
		held++
		too := func(what string, from, to int64, limit time.Duration) {
			if took, limit := time.Duration(to-from), limit+margin+c.late(from, to); took > limit {
				c.wrong = append(c.wrong,
					fmt.Sprintf("%s: %s %s after %s at %s, within %s is right", nodeName(f.node), what, short(took),
						f.kind.name, harness.Moment(f.injected), short(limit)))
			}
		}
		too("serves", f.healed, f.served, back)
		if !away {
			too("is connected", max(f.healed, f.served), f.well, wellWithin)
		}
	}
	return fmt.Sprintf("%d of %d faults of nodes held against how soon their kind has to be over", held, all) +
		"; for the others ZooKeeper was away, registration frozen, or most clocks wrong"
}

func TestRecoveries(t *testing.T) {
	s := int64(time.Second)
	quick := &kind{name: "kill -9", back: 4 * time.Second, fromDisk: true}
	newcomer := &kind{name: "state lost", back: 4 * time.Second, registers: true}
	lost := &fault{node: -1, kind: &kind{name: "wiped"}, injected: 100 * s, healed: 101 * s, well: 102 * s}
	for _, row := range []struct {
		name  string
		fault fault
		late  time.Duration
		want  int
	}{
		{"in time", fault{kind: quick, injected: 10 * s, healed: 11 * s, served: 16 * s, well: 17 * s}, 0, 0},
		{"late", fault{kind: quick, injected: 10 * s, healed: 11 * s, served: 18 * s, well: 19 * s}, 0, 1},
		{"late on a machine that was", fault{kind: quick, injected: 10 * s, healed: 11 * s, served: 18 * s,
			well: 19 * s}, 2 * time.Second, 0},
		{"connected late", fault{kind: quick, injected: 10 * s, healed: 11 * s, served: 16 * s, well: 50 * s}, 0, 1},
		{"ZooKeeper is away", fault{kind: newcomer, injected: 90 * s, healed: 91 * s, served: 110 * s, well: 111 * s},
			0, 0},
		{"ZooKeeper is away, and looked for",
			fault{kind: quick, injected: 90 * s, healed: 91 * s, served: 101 * s, well: 150 * s}, 0, 0},
		{"ZooKeeper is away, and long looked for",
			fault{kind: quick, injected: 90 * s, healed: 91 * s, served: 110 * s, well: 111 * s}, 0, 1},
		{"registration is frozen", fault{kind: newcomer, injected: 110 * s, healed: 111 * s, served: 150 * s,
			well: 151 * s}, 0, 0},
		{"which it needs not", fault{kind: quick, injected: 110 * s, healed: 111 * s, served: 150 * s, well: 151 * s},
			0, 1},
		{"frozen no more", fault{kind: newcomer, injected: 310 * s, healed: 311 * s, served: 330 * s, well: 331 * s},
			0, 1},
	} {
		c := &campaign{timeline: &timeline{}}
		c.faults = []*fault{lost, &row.fault}
		c.delays = []lateness{{row.fault.healed + s, row.late}}
		if c.recoveries(); len(c.wrong) != row.want {
			t.Errorf("%s: %v", row.name, c.wrong)
		}
	}
}
