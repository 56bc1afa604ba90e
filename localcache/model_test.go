package localcache

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/flaked/flaked/internal/testkit/memfile"
)

// model tracks what a caller of a StateFile may rely on.
type model struct {
	acked *Record  // of the last Save that returned nil
	tried []Record // since then
	floor int64    // the largest ReservedUntil that counted and was not given up since
	rec   Record   // what the caller goes on from
	lost  bool     // the file was found corrupt, and nothing was saved since
}

// save records what the caller claims from the moment when it calls Save.
func (m *model) save(r Record) {
	m.tried = append(m.tried, r)
	if m.acked != nil && sameHolding(r, *m.acked) {
		m.floor = min(m.floor, r.ReservedUntil)
	}
	m.rec = r
}

func (m *model) saved(r Record) {
	m.acked, m.tried, m.floor, m.lost = &r, nil, r.ReservedUntil, false
}

func sameHolding(a, b Record) bool {
	x, y := memoryOf(a), memoryOf(b)
	return x.Cluster == y.Cluster && x.Node == y.Node && x.Worker == y.Worker && a.Released == b.Released
}

// check returns an error if l breaks a promise of the StateFile. If whole is set, no block was
// damaged and only power and writes failed, so a saved record must be found.
func (m *model) check(l Loaded, whole bool) error {
	if l.Status == StatusEmpty || l.Status == StatusCorrupt {
		if whole && m.acked != nil && !m.lost {
			return fmt.Errorf("record lost without damage: %s", l.Reason)
		}
		return nil
	}
	r := l.Record
	if m.acked != nil && sameHolding(r, *m.acked) && r.ReservedUntil < m.floor {
		return fmt.Errorf("M %d below %d, which counted", r.ReservedUntil, m.floor)
	}
	known := m.tried
	if m.acked != nil {
		known = append([]Record{*m.acked}, m.tried...)
	}
	var holding, confirmed, stopped, term, h, used bool
	for _, k := range known {
		if !sameHolding(k, r) {
			continue
		}
		holding = true
		then, now := memoryOf(k), memoryOf(r)
		confirmed = confirmed || then.Confirmed || !now.Confirmed
		stopped = stopped || then.Stopped || !now.Stopped
		term = term || then.Term == now.Term
		h = h || r.LeaseUntil <= k.LeaseUntil
		used = used || now.Used >= then.Used
	}
	switch {
	case !holding:
		return fmt.Errorf("a superseded claim came back: %+v", r)
	case !confirmed || !stopped || !term || !h || !used:
		return fmt.Errorf("what was withdrawn came back (confirmed %v, stopped %v, term %v, H %v, used %v): %+v",
			confirmed, stopped, term, h, used, r)
	}
	return nil
}

// damage spoils one block: with zeros, one flipped bit, or random bytes.
func damage(rng *rand.Rand, image []byte) {
	b := image[rng.IntN(2)*blockSize:][:blockSize]
	switch rng.IntN(3) {
	case 0:
		clear(b)
	case 1:
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
	case 2:
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
	}
}

// checkAll simulates power cuts at this moment, each with and without damage to a block.
func (m *model) checkAll(t *rapid.T, rng *rand.Rand, f *memfile.File) {
	for i := range 12 {
		g := f.Clone()
		g.Unit = []int64{512, 1, 4096}[i%3]
		g.Survives = func(int64) bool { return rng.IntN(2) == 0 }
		if i == 0 {
			g.Survives = nil
		}
		g.Crash()
		image := g.Disk()
		if err := m.check(load(t, image), true); err != nil {
			t.Fatalf("power cut: %v", err)
		}
		damage(rng, image)
		if err := m.check(load(t, image), false); err != nil {
			t.Fatalf("power cut and damage: %v", err)
		}
	}
}

func load(t *rapid.T, image []byte) Loaded {
	c, err := New(memfile.New(image), fpA)
	if err != nil {
		t.Fatal(err)
	}
	return c.Load()
}

// next returns a record that a caller may save after m.rec.
func next(t *rapid.T, m *model) Record {
	r := m.rec
	stride := rapid.Int64Range(0, 25_000)
	switch rapid.SampledFrom([]string{"tick", "tick", "tick", "heartbeat", "stop", "resume", "unconfirm", "confirm",
		"term", "slot", "lease bound down", "used", "same"}).Draw(t, "save") {
	case "tick":
		r.ReservedUntil = max(r.ReservedUntil, m.floor) + stride.Draw(t, "stride")
	case "heartbeat":
		r.LeaseUntil += stride.Draw(t, "stride")
		r.ServedMs += 3000
	case "stop":
		r.ReservedUntil -= stride.Draw(t, "stride")
		r = r.with(func(m *memory) { m.Stopped = true })
	case "resume":
		r.ReservedUntil = max(r.ReservedUntil, m.floor) + stride.Draw(t, "stride")
		r = r.with(func(m *memory) { m.Stopped = false })
	case "unconfirm":
		r = r.with(func(m *memory) { m.Confirmed = false })
	case "confirm":
		r = r.with(func(m *memory) { m.Confirmed = true })
	case "term":
		r = r.with(func(m *memory) { m.Term++ })
	case "slot":
		node := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node")
		r = r.with(func(m *memory) { m.Worker, m.Node = (m.Worker+1)%3, node })
		r.Released = false
	case "lease bound down":
		r.LeaseUntil -= stride.Draw(t, "stride")
	case "used":
		r = r.with(func(m *memory) { m.Used += 10 })
	}
	return r
}

// TestNoSingleFaultLosesTheRecord runs a caller on a disk whose writes, syncs and power fail, and whose blocks are
// damaged. After every step it simulates power cuts with and without damage.
func TestNoSingleFaultLosesTheRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		f := memfile.New(nil)
		fresh := Record{ReservedUntil: 1_000_000,
			LeaseUntil: 2_000_000}.with(func(m *memory) { m.Cluster, m.Node = "c", "a" })
		m := &model{rec: fresh}
		f.Survives = func(int64) bool { return rng.IntN(2) == 0 }

		// countdown selects the operation of the next Save that fails. If power is set, all
		// later operations fail as well.
		countdown, power := -1, false
		fails := func() bool {
			countdown--
			return countdown == -1 || power && countdown < 0
		}
		f.FailWrites = func(_ int64, size int) (int, error) {
			if fails() {
				if power {
					return 0, errIO
				}
				return rng.IntN(size + 1), errIO
			}
			return 0, nil
		}
		failSyncs := func() error {
			// Check at every sync as well, while the write is still unsynced.
			m.checkAll(t, rng, f)
			if fails() {
				return errIO
			}
			return nil
		}
		f.FailSyncs = failSyncs

		open := func() *StateFile {
			c, err := New(f, fpA)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		c := open()
		// restart goes on from the record that is found, as a node would.
		restart := func(whole bool) {
			c = open()
			l := c.Load()
			if err := m.check(l, whole); err != nil {
				t.Fatalf("restart: %v", err)
			}
			if l.Status == StatusCorrupt || l.Status == StatusEmpty {
				// The caller goes on as a new node, with a lower ReservedUntil. The old record may
				// still come back, because a torn write can repair the damaged sector.
				m.lost = true
				was := memoryOf(m.rec).Node
				m.rec = fresh.with(func(m *memory) { m.Node = was + "'" })
				return
			}
			m.rec = l.Record
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			countdown, power = -100, false
			switch op := rapid.SampledFrom([]string{"save", "save", "save", "fail", "fail", "power", "kill", "rot",
				"release"}).Draw(t, "op"); op {
			case "save", "fail", "power", "release":
				r := next(t, m)
				if op != "save" {
					countdown = rapid.IntRange(0, 7).Draw(t, "failing")
				}
				power = op == "power"
				var err error
				if op == "release" {
					r = c.known
					r.Released = true
					m.save(r)
					err = c.Invalidate()
				} else {
					m.save(r)
					_, err = c.Save(r)
				}
				if err == nil {
					m.saved(r)
				} else if op == "save" {
					t.Fatal(err)
				}
				if power {
					f.Crash()
					restart(true)
				}
			case "kill": // the page cache stays
				restart(true)
			case "rot":
				f.Crash()
				image := f.Disk()
				damage(rng, image)
				f.Damage(0, image)
				restart(false)
			}
			m.checkAll(t, rng, f)
		}
	})
}
