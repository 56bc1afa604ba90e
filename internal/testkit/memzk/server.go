// Package memzk is a ZooKeeper in memory for tests: store.Mem, to which it adds faults. A Server loses data and
// sessions. A Session, one client of it, is cut off, lags behind, or loses single calls.
package memzk

import (
	"errors"
	"sync"

	"github.com/flaked/flaked/internal/core/store"
)

// Server is a ZooKeeper in memory. It starts no goroutine, and the only clock it reads is the one that New got.
type Server struct {
	mem *store.Mem

	mu       sync.Mutex // guards what follows, and the sessions' fields
	late     []lateCall
	restored int // how often RestoreRunning was called
}

// lateCall is a write that its client has given up on and that the server has not applied
// yet. Deliver applies it.
type lateCall struct {
	from    *Session
	session int64
	call    Call
	apply   func() error
}

// New returns an empty standalone server, whose leader epoch is 0. The clock returns
// Unix milliseconds. A nil clock means the machine's own.
func New(clock func() int64) *Server { return &Server{mem: store.NewMem(clock)} }

// Session returns a new client. The client opens its session at its first use.
func (m *Server) Session() *Session { return &Session{m: m, inner: m.mem.Session()} }

// SetEpoch simulates the election of a leader: the next zxids are the first of this epoch.
func (m *Server) SetEpoch(epoch uint32) { m.SetZxid(int64(epoch) << 32) }

// SetZxid sets the zxid of the last write. A server that never holds an election counts on from 0, past 2^32.
func (m *Server) SetZxid(zxid int64) { m.mem.Access(func(d *store.MemData) { d.Zxid = zxid }) }

// Zxid returns the zxid of the last write. Its high 32 bits are the leader's epoch.
func (m *Server) Zxid() (zxid int64) {
	m.mem.Access(func(d *store.MemData) { zxid = d.Zxid })
	return zxid
}

// Peek reads a record without a session, so no fault applies and nothing changes. It
// returns store.ErrNoNode if the record does not exist.
func (m *Server) Peek(path string) (data []byte, stat store.Stat, err error) {
	m.mem.Access(func(d *store.MemData) { data, stat, err = d.Tree.Get(path) })
	return data, stat, err
}

// Wipe drops all data and all sessions. Clients open new sessions at their next use. Zxids
// start again in epoch 1 if the server has had an epoch above 0, as in an ensemble, and
// otherwise in epoch 0.
func (m *Server) Wipe() {
	m.mem.Access(func(d *store.MemData) {
		d.Tree = make(store.MemTree)
		clear(d.Live)
		d.Zxid = min(d.Zxid>>32, 1) << 32
	})
}

// Snapshot is a copy of a server's data.
type Snapshot struct {
	tree store.MemTree
	zxid int64
}

// Snapshot copies the data as they are now.
func (m *Server) Snapshot() (s *Snapshot) {
	m.mem.Access(func(d *store.MemData) { s = &Snapshot{d.Tree.Clone(), d.Zxid} })
	return s
}

// Restore replaces the data with a snapshot. Zxids continue from the snapshot, so the
// server issues some of them again, as a standalone server does. An ensemble elects a
// leader after a restore: call SetEpoch to simulate that. All sessions are lost. The
// ephemeral records of the snapshot stay until ExpireOrphans, as ZooKeeper keeps them for
// one session timeout.
func (m *Server) Restore(s *Snapshot) {
	m.mem.Access(func(d *store.MemData) {
		d.Tree, d.Zxid = s.tree.Clone(), s.zxid
		clear(d.Live)
	})
}

// RestoreRunning is Restore for a server that keeps running meanwhile, as ZooKeeper 3.9 does at an admin restore: the
// sessions and the zxids go on.
func (m *Server) RestoreRunning(s *Snapshot) {
	m.mu.Lock()
	m.restored++
	m.mu.Unlock()
	m.mem.Access(func(d *store.MemData) { d.Tree = s.tree.Clone() })
}

// ExpireOrphans removes the ephemeral records whose session has ended.
func (m *Server) ExpireOrphans() {
	m.mem.Access(func(d *store.MemData) {
		d.Zxid++
		d.Tree.RemoveEphemerals(func(owner int64) bool { return !d.Live[owner] })
	})
}

// SetCreateCount sets the number of the next sequential record below path. It returns
// store.ErrNoNode if path does not exist.
func (m *Server) SetCreateCount(path string, n int32) (err error) {
	m.mem.Access(func(d *store.MemData) { err = d.Tree.SetCreateCount(path, n) })
	return err
}

// Deliver applies the writes that FailLate has delayed, in their order. It drops a write
// whose session has ended, as a server does.
func (m *Server) Deliver() {
	m.mu.Lock()
	late := m.late
	m.late = nil
	m.mu.Unlock()
	for _, l := range late {
		alive := false
		m.mem.Access(func(d *store.MemData) { alive = d.Live[l.session] })
		if !alive {
			continue
		}
		m.mu.Lock()
		l.from.past = nil
		done := l.from.done
		m.mu.Unlock()
		if result := l.apply(); done != nil && !errors.Is(result, store.ErrUnreachable) {
			done(l.call, result, store.ErrUnreachable)
		}
	}
}
