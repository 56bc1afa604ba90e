package localcache

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/memfile"
)

var (
	errIO = errors.New("input/output error")
	fpA   = Fingerprint{MachineID: "m", Filesystem: "f", Inode: "i", BirthTime: "b"}
)

func mustNew(t testing.TB, f File) *StateFile {
	t.Helper()
	c, err := New(f, fpA)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustSave(t testing.TB, c *StateFile, r Record) uint64 {
	t.Helper()
	g, err := c.Save(r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func reload(t testing.TB, image []byte) Loaded {
	t.Helper()
	return mustNew(t, memfile.New(image)).Load()
}

// saved returns an image with M = 100000 saved, then ReservedUntil = 101000.
func saved(t testing.TB) ([]byte, Record) {
	t.Helper()
	f := memfile.New(nil)
	c := mustNew(t, f)
	r := sample()
	r.ReservedUntil = 100_000
	mustSave(t, c, r)
	r.ReservedUntil = 101_000
	mustSave(t, c, r)
	return f.Disk(), c.Load().Record
}

// Later changes that a caller makes to a payload must not reach the StateFile, which compares payloads.
func TestPayloadIsNotShared(t *testing.T) {
	c := mustNew(t, memfile.New(nil))
	r := sample()
	mustSave(t, c, r)
	r.Payload[0] = 'x'
	c.Load().Record.Payload[0] = 'y'
	if got := c.Load().Record.Payload; !bytes.Equal(got, sample().Payload) || !bytes.Equal(c.known.Payload, got) {
		t.Errorf("the payload is shared: %s", got)
	}
}

func TestSyncsPerSave(t *testing.T) {
	f := memfile.New(nil)
	syncs := 0
	f.FailSyncs = func() error { syncs++; return nil }
	c := mustNew(t, f)
	r := sample()
	step := func(name string, want int, change func()) {
		t.Helper()
		change()
		syncs = 0
		mustSave(t, c, r)
		if syncs != want {
			t.Errorf("%s: %d syncs, want %d", name, syncs, want)
		}
	}
	step("first ever", 2, func() {})
	step("every second", 1, func() { r.ReservedUntil += 1000 })
	step("heartbeat", 1, func() { r.ReservedUntil += 1000; r.LeaseUntil += 3000; r.ServedMs += 3000 })
	step("long stride", 2, func() { r.ReservedUntil += limits.BoundSlack.Milliseconds() + 1 })
	step("stop", 2, func() { r.ReservedUntil -= 5000; r = r.with(func(m *memory) { m.Stopped = true }) })
	step("another slot", 2, func() { r = r.with(func(m *memory) { m.Worker++ }) })
	c = mustNew(t, f)
	step("first after a restart", 2, func() { r.ReservedUntil += 1000 })
	step("then", 1, func() { r.ReservedUntil += 1000 })
	c = mustNew(t, f)
	step("resumed", 3, func() { r = r.with(func(m *memory) { m.Stopped = false }) })
}

func TestNewRefusesOtherFormats(t *testing.T) {
	for _, version := range []byte{formatVersion - 1, formatVersion + 1} {
		for i := range 2 {
			image, _ := saved(t)
			b := image[i*blockSize : (i+1)*blockSize]
			b[4] = version
			reseal(b)
			for _, im := range [][]byte{image, append(image[:len(image):len(image)], 0)} {
				if _, err := New(memfile.New(im), fpA); !errors.Is(err, ErrOtherFormat) {
					t.Errorf("block %d of %d bytes has format %d: %v", i, len(im), version, err)
				}
			}
		}
	}
}

// badSectors fails to read some blocks.
type badSectors struct {
	*memfile.File
	bad [2]bool
}

func (f badSectors) ReadAt(p []byte, off int64) (int, error) {
	if f.bad[off/blockSize] {
		return 0, errIO
	}
	return f.File.ReadAt(p, off)
}

func TestUnreadableBlock(t *testing.T) {
	image, want := saved(t)
	for i := range 2 {
		f := badSectors{File: memfile.New(image)}
		f.bad[i] = true
		l := mustNew(t, f).Load()
		if !l.Damaged || l.Record.ReservedUntil < want.ReservedUntil || !strings.Contains(l.Reason, errIO.Error()) {
			t.Errorf("block %d: %+v", i, l)
		}
	}
	if _, err := New(badSectors{memfile.New(image), [2]bool{true, true}}, fpA); !errors.Is(err, errIO) {
		t.Errorf("both: %v", err)
	}
}

func TestFailedSaveChangesNothingUntilItSucceeds(t *testing.T) {
	f := memfile.New(nil)
	c := mustNew(t, f)
	r := sample()
	g := mustSave(t, c, r)
	before := c.Load()
	f.FailSyncs = func() error { return errIO }
	r.ReservedUntil += 1000
	for range 3 {
		if _, err := c.Save(r); !errors.Is(err, errIO) {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(c.Load(), before) {
			t.Fatalf("Load shows what is not durable: %+v", c.Load())
		}
	}
	f.FailSyncs = nil
	if got := mustSave(t, c, r); got != g+4 {
		t.Errorf("generation %d after %d and three failures", got, g)
	}
}

func TestLoadDuringStalledSync(t *testing.T) {
	f := memfile.New(nil)
	c := mustNew(t, f)
	mustSave(t, c, sample())
	stalled, goOn := make(chan bool), make(chan bool)
	f.FailSyncs = func() error { stalled <- true; <-goOn; return nil }
	done := make(chan error)
	go func() {
		r := sample()
		r.ReservedUntil += 1000
		_, err := c.Save(r)
		done <- err
	}()
	<-stalled
	if got := c.Load().Record.ReservedUntil; got != sample().ReservedUntil {
		t.Errorf("M %d while it is being written", got)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := c.Load().Record.ReservedUntil; got != sample().ReservedUntil+1000 {
		t.Errorf("M %d afterwards", got)
	}
}

// memfile cannot import this package, so it has the size of a state file as a figure.
func TestMemfileIsAsLargeAsAStateFile(t *testing.T) {
	if n := len(memfile.New(nil).Disk()); n != FileSize {
		t.Errorf("%d bytes, want %d", n, FileSize)
	}
}
