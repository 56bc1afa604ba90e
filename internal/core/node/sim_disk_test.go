package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"syscall"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/memfile"
	"github.com/flaked/flaked/localcache"
)

// trouble is a fault of a disk.
type trouble int

const (
	noTrouble trouble = iota
	diskFull          // overwriting needs space as well, as on btrfs
	diskReadOnly
)

var errSim = errors.New("simulated I/O error")

// newDisk gives a machine a new and blank state file, with an inode that no other file has had.
func (s *sim) newDisk(m *machine) { s.giveDisk(m, memfile.New(nil), s.newInode()) }

func (s *sim) newInode() localcache.Fingerprint {
	s.inode++
	return localcache.Fingerprint{Inode: fmt.Sprint(s.inode)}
}

// giveDisk puts a disk into a machine on which nothing runs.
func (s *sim) giveDisk(m *machine, disk *memfile.File, print localcache.Fingerprint) {
	m.Disk, m.Print = disk, print
	disk.Unit = pick[int64](s, 512, 4096)
	disk.Full = s.chance(4) // must not matter: the file does not grow
	disk.Survives = s.survivors()
	disk.FailWrites = func(_ int64, size int) (int, error) {
		switch m.trouble {
		case diskFull:
			return s.rng.IntN(size + 1), syscall.ENOSPC
		case diskReadOnly:
			return 0, syscall.EROFS
		}
		return 0, nil
	}
	disk.FailSyncs = func() error {
		p := m.proc
		if p == nil || m.Disk != disk {
			return nil
		}
		p.saving = true
		if stall := m.stall; stall != nil {
			m.stall = nil
			stall()
			s.stillThere(p)
		}
		s.meanwhile(p)
		p.saving = false
		if s.faults && s.depth < simDepth && s.chance(60) {
			s.note("%s: fsync fails", p.name)
			return errSim
		}
		return nil
	}
	disk.Landed = func(image []byte) { m.durable = lookAt(image) }
	m.durable, m.saved = lookAt(disk.Disk()), localcache.Record{}
}

// spiedCache is a state directory that tells the checks what was saved.
type spiedCache struct {
	*localcache.StateFile
	m *machine
}

func (c spiedCache) Save(r localcache.Record) (uint64, error) {
	if has(r.Payload, "stopped") { // a lower ReservedUntil counts at once, whatever reaches the disk
		c.m.saved.ReservedUntil = min(c.m.saved.ReservedUntil, r.ReservedUntil)
	}
	generation, err := c.StateFile.Save(r)
	if err == nil {
		c.m.s.saved(c.m, r)
	}
	return generation, err
}

// survivors returns a function that reports whether an unsynced write at an offset reaches the
// disk. Of most writes some parts do.
func (s *sim) survivors() func(int64) bool {
	all := s.chance(2)
	return func(off int64) bool {
		if off%8192 == 0 || off%4096 == 0 {
			all = s.chance(2)
		}
		return all != s.chance(4)
	}
}

// rot damages the byte of the disk at an offset.
func (s *sim) rot(m *machine, off int64) {
	s.note("%s: a byte of the disk rots at %d", m.name, off)
	old := m.Disk.Disk()[off]
	m.Disk.Damage(off, []byte{old ^ byte(s.between(1, 255))})
}

// diskLook is the record that a restart would find on a disk. It is read without the code under test: the issue rule
// must hold for the disk's contents, even if a node believes something else.
type diskLook struct {
	found                bool
	node                 string
	worker               int
	floor, reservedUntil int64 // Unix ms
	begin                int64 // m, raised if one block is lost
	stopped, released    bool
	generation           uint64
	block                int // the newest
}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

func lookAt(image []byte) (look diskLook) {
	const half = localcache.FileSize / 2
	valid := 0
	for i := range 2 {
		b := image[i*half:][:half]
		if string(b[:4]) != "FLKD" || crc32.Checksum(b[:half-4], crcTable) != binary.LittleEndian.Uint32(b[half-4:]) {
			continue
		}
		valid++
		if gen := binary.LittleEndian.Uint64(b[8:]); !look.found || gen > look.generation {
			json := b[20:][:binary.LittleEndian.Uint32(b[16:])]
			look = diskLook{
				found: true, generation: gen, block: i,
				node: text(json, "node"), worker: int(number(json, "worker")), floor: number(json, "floor"),
				reservedUntil: number(json, "reserved_until"),
				stopped:       has(json, "stopped"), released: has(json, "released"),
			}
		}
	}
	look.begin = look.reservedUntil
	if valid == 1 {
		look.begin += limits.BoundSlack.Milliseconds()
	}
	return look
}

// The functions below read JSON just well enough for these records: a value by its name.

func value(json []byte, name string) []byte {
	var key [24]byte
	k := append(append(append(key[:0], '"'), name...), '"', ':')
	i := bytes.Index(json, k)
	if i < 0 {
		return nil
	}
	return json[i+len(k):]
}

func number(json []byte, name string) int64 {
	v := value(json, name)
	end := bytes.IndexAny(v, ",}")
	if end < 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(v[:end]), 10, 64)
	return n
}

func text(json []byte, name string) string {
	v := value(json, name)
	if len(v) < 2 {
		return ""
	}
	end := bytes.IndexByte(v[1:], '"')
	return string(v[1 : end+1])
}

func has(json []byte, name string) bool { return bytes.HasPrefix(value(json, name), []byte("true")) }
