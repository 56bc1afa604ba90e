package zkstore

import (
	"errors"
	"slices"
	"sync"
	"time"
)

var errEphemeralParent = errors.New("zkstore: ephemeral records may not have children")

// Mem is a ZooKeeper in memory, for development and for tests that need
// faults in the right place: it starts no goroutine and reads no clock but the
// one it is given. Its clients are sessions; see MemSession for the faults.
type Mem struct {
	clock func() int64

	mu          sync.Mutex // guards what follows, and the sessions' fields
	tree        memTree
	zxid        int64
	live        map[int64]bool // the sessions that have not ended
	lastSession int64
	late        []lateCall
}

// lateCall is a write that is still under way when its client has given it up.
type lateCall struct {
	from    *MemSession
	session int64
	call    Call
	apply   func(memTree, txn) error
}

// NewMem makes an empty server, standalone: its leader epoch is 0. The clock
// gives Unix milliseconds; nil means the real one.
func NewMem(clock func() int64) *Mem {
	if clock == nil {
		clock = func() int64 { return time.Now().UnixMilli() }
	}
	return &Mem{clock: clock, tree: make(memTree), live: make(map[int64]bool), lastSession: 1 << 56}
}

// Session makes a client. It has no session of the server's until it is used.
func (m *Mem) Session() *MemSession { return &MemSession{m: m} }

// SetEpoch is the election of a leader: zxids go on from this epoch's first.
func (m *Mem) SetEpoch(epoch uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.zxid = int64(epoch) << 32
}

// Zxid returns the number of the last write, the leader's epoch in its high 32 bits.
func (m *Mem) Zxid() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.zxid
}

// Peek reads a record without a session, so no fault applies and nothing changes.
// ErrNoNode when there is none.
func (m *Mem) Peek(path string) ([]byte, Stat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.tree.check(path, AnyVersion)
	if err != nil {
		return nil, Stat{}, err
	}
	return slices.Clone(node.data), node.stat, nil
}

// Wipe loses all data and all sessions; clients come back with new ones. The
// zxids start again, from epoch 1 if this has been an ensemble, else from 0.
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

// Restore puts an old copy in the place of the data, zxids included: they are
// issued again, as by a standalone server. An ensemble elects a leader then:
// SetEpoch. All sessions are lost, but the ephemeral records in the copy stay
// until ExpireOrphans, as they do in ZooKeeper for one session timeout.
func (m *Mem) Restore(s *MemSnapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tree, m.zxid = s.tree.clone(), s.zxid
	clear(m.live)
}

// ExpireOrphans removes the ephemeral records that belong to no session.
func (m *Mem) ExpireOrphans() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.zxid++
	m.tree.removeEphemerals(func(owner int64) bool { return !m.live[owner] })
}

// Deliver carries out the writes that were under way, in their order, those of
// sessions that have ended excepted: a server turns them down.
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

// SetCreateCount sets what the next sequential record below path is numbered.
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
