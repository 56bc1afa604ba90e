package store

import (
	"errors"
	"sync"
	"time"
)

var errEphemeralParent = errors.New("ephemeral records may not have children")

// Mem is a ZooKeeper in memory, for development. It starts no goroutine, and the only clock it reads is the one that
// NewMem got. Session returns its clients. internal/testkit/memzk adds faults to it.
type Mem struct {
	clock func() int64

	mu   sync.Mutex // guards what follows, and the sessions' fields
	data MemData
}

// MemData has the records of a Mem.
type MemData struct {
	Tree        MemTree
	Zxid        int64          // of the last write. The high 32 bits are the leader's epoch
	Live        map[int64]bool // the sessions that have not ended
	lastSession int64
}

// NewMem returns an empty standalone server, whose leader epoch is 0. The clock returns
// Unix milliseconds. A nil clock means the machine's own.
func NewMem(clock func() int64) *Mem {
	if clock == nil {
		clock = func() int64 { return time.Now().UnixMilli() }
	}
	return &Mem{clock: clock, data: MemData{Tree: make(MemTree), Live: make(map[int64]bool), lastSession: 1 << 56}}
}

// Session returns a new client. The client opens its session at its first use.
func (m *Mem) Session() *MemSession { return &MemSession{m: m} }

// Access runs f while no call is carried out. f may change the data.
func (m *Mem) Access(f func(*MemData)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.data)
}

// open opens a session.
func (d *MemData) open() (session int64) {
	d.lastSession++
	d.Zxid++
	d.Live[d.lastSession] = true
	return d.lastSession
}

// End ends a session and removes its ephemeral records, unless the session has ended before.
func (d *MemData) End(session int64) {
	if !d.Live[session] {
		return
	}
	d.Zxid++
	delete(d.Live, session)
	d.Tree.RemoveEphemerals(func(owner int64) bool { return owner == session })
}
