package store

import (
	"errors"
	"slices"
	"sync"
	"time"
)

var errEphemeralParent = errors.New("ephemeral records may not have children")

// Mem is a ZooKeeper in memory, for development and for tests that inject faults. It starts
// no goroutine, and the only clock it reads is the one that NewMem got. Session returns its
// clients. MemSession describes the faults.
type Mem struct {
	clock func() int64

	mu          sync.Mutex // guards what follows, and the sessions' fields
	tree        memTree
	zxid        int64
	live        map[int64]bool // the sessions that have not ended
	lastSession int64
	late        []lateCall
	restored    int // how often RestoreRunning was called
}

// lateCall is a write that its client has given up on and that the server has not applied
// yet. Deliver applies it.
type lateCall struct {
	from    *MemSession
	session int64
	call    Call
	apply   func(memTree, txn) error
}

// NewMem returns an empty standalone server, whose leader epoch is 0. The clock returns
// Unix milliseconds. A nil clock means the machine's own.
func NewMem(clock func() int64) *Mem {
	if clock == nil {
		clock = func() int64 { return time.Now().UnixMilli() }
	}
	return &Mem{clock: clock, tree: make(memTree), live: make(map[int64]bool), lastSession: 1 << 56}
}

// Session returns a new client. The client opens its session at its first use.
func (m *Mem) Session() *MemSession { return &MemSession{m: m} }

// SetEpoch simulates the election of a leader: the next zxids are the first of this epoch.
func (m *Mem) SetEpoch(epoch uint32) {
	m.SetZxid(int64(epoch) << 32)
}

// SetZxid sets the zxid of the last write. A server that never holds an election counts on from 0, past 2^32.
func (m *Mem) SetZxid(zxid int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.zxid = zxid
}

// Zxid returns the zxid of the last write. Its high 32 bits are the leader's epoch.
func (m *Mem) Zxid() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.zxid
}

// Peek reads a record without a session, so no fault applies and nothing changes. It
// returns ErrNoNode if the record does not exist.
func (m *Mem) Peek(path string) ([]byte, Stat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.tree.check(path, AnyVersion)
	if err != nil {
		return nil, Stat{}, err
	}
	return slices.Clone(node.data), node.stat, nil
}

// Wipe drops all data and all sessions. Clients open new sessions at their next use. Zxids
// start again in epoch 1 if the server has had an epoch above 0, as in an ensemble, and
// otherwise in epoch 0.
func (m *Mem) Wipe() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tree = make(memTree)
	clear(m.live)
	m.zxid = min(m.zxid>>32, 1) << 32
}

// MemSnapshot is a copy of a server's data.
type MemSnapshot struct {
	tree memTree
	zxid int64
}

// Snapshot copies the data as they are now.
func (m *Mem) Snapshot() *MemSnapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &MemSnapshot{m.tree.clone(), m.zxid}
}

// Restore replaces the data with a snapshot. Zxids continue from the snapshot, so the
// server issues some of them again, as a standalone server does. An ensemble elects a
// leader after a restore: call SetEpoch to simulate that. All sessions are lost. The
// ephemeral records of the snapshot stay until ExpireOrphans, as ZooKeeper keeps them for
// one session timeout.
func (m *Mem) Restore(s *MemSnapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tree, m.zxid = s.tree.clone(), s.zxid
	clear(m.live)
}

// RestoreRunning is Restore for a server that keeps running meanwhile, as ZooKeeper 3.9 does at an admin restore: the
// sessions and the zxids go on.
func (m *Mem) RestoreRunning(s *MemSnapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tree = s.tree.clone()
	m.restored++
}

// ExpireOrphans removes the ephemeral records whose session has ended.
func (m *Mem) ExpireOrphans() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.zxid++
	m.tree.removeEphemerals(func(owner int64) bool { return !m.live[owner] })
}

// Deliver applies the writes that FailLate has delayed, in their order. It drops a write
// whose session has ended, as a server does.
func (m *Mem) Deliver() {
	m.mu.Lock()
	late := m.late
	m.late = nil
	m.mu.Unlock()
	for _, l := range late {
		m.mu.Lock()
		if !m.live[l.session] || l.from.id != l.session {
			m.mu.Unlock()
			continue
		}
		result, done := l.from.serve(l.call, l.apply), l.from.done
		m.mu.Unlock()
		if done != nil {
			done(l.call, result, ErrUnreachable)
		}
	}
}

// SetCreateCount sets the number of the next sequential record below path. It returns
// ErrNoNode if path does not exist.
func (m *Mem) SetCreateCount(path string, n int32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, ok := m.tree[path]
	if !ok {
		return ErrNoNode
	}
	node.created = n
	return nil
}

// expire ends a session. Called under mu.
func (m *Mem) expire(id int64) {
	if !m.live[id] {
		return
	}
	m.zxid++
	delete(m.live, id)
	m.tree.removeEphemerals(func(owner int64) bool { return owner == id })
}
