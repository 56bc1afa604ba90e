package memzk

import (
	"errors"
	"slices"

	"github.com/flaked/flaked/internal/core/store"
)

// Call describes one call to a store, for SetFault and SetDone.
type Call struct {
	Op   string // get, children, create, set, delete, multi, sync, ensure root
	Path string // "/" for multi and ensure root
	Data []byte // of a create or set; do not modify it
	Ops  []store.Op
	// More is set if another get of the same GetAll follows. All gets of a GetAll take one
	// round trip together.
	More bool
}

// Write reports whether the call is a write: neither a get nor a children nor a sync.
func (c Call) Write() bool {
	switch c.Op {
	case "get", "children", "sync":
		return false
	}
	return true
}

// Touches reports whether the call or one of its operations names the path.
func (c Call) Touches(path string) bool {
	return c.Path == path || slices.ContainsFunc(c.Ops, func(op store.Op) bool { return pathOf(op) == path })
}

func pathOf(op store.Op) string {
	switch op := op.(type) {
	case store.CheckOp:
		return op.Path
	case store.CreateOp:
		return op.Path
	case store.SetOp:
		return op.Path
	case store.DeleteOp:
		return op.Path
	}
	return ""
}

// Fault is a failure that SetFault injects into a call.
type Fault int

const (
	// NoFault lets the call through.
	NoFault Fault = iota
	// FailBefore loses the request: the server does not apply it, and the caller gets
	// store.ErrUnreachable.
	FailBefore
	// FailAfter loses the acknowledgement: the server applies the call, and the caller gets
	// store.ErrUnreachable.
	FailAfter
	// FailLate delays the request, and the caller gets store.ErrUnreachable at once. Deliver
	// applies a delayed write if its session is still alive then. A delayed read has no
	// effect.
	FailLate
	// FailQuota and FailLocal refuse the request: the server does not apply it, and the caller gets store.ErrQuota or
	// store.ErrLocalSession.
	FailQuota
	FailLocal
)

var refusals = map[Fault]error{FailQuota: store.ErrQuota, FailLocal: store.ErrLocalSession}

var (
	errFault       = errors.New("injected fault")
	errPartitioned = errors.New("partitioned")
)

// SetFault makes every call ask f which fault to inject. f may use the Server and its
// sessions. A nil f injects no faults.
func (s *Session) SetFault(f func(Call) Fault) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.fault = f
}

// SetDone makes f observe every call that the server has carried out. result is the outcome
// on the server, and told is the error that the client gets. The two differ if the answer
// is lost. f runs before the call returns, or in Deliver for a delayed write. f may use the
// Server and its sessions. A nil f ends the observation.
func (s *Session) SetDone(f func(c Call, result, told error)) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.done = f
}

// Partition cuts the client off: its calls fail at once and are not applied.
// Its session lives on until Expire.
func (s *Session) Partition() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.partitioned = true
}

// Heal ends Partition.
func (s *Session) Heal() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.partitioned = false
}

// Expire ends the session in the server and removes its ephemeral records. The client opens
// a new session at its next use.
func (s *Session) Expire() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.mem.Access(func(d *store.MemData) { d.End(s.id) })
}

// Lag simulates a server that falls behind from now on: the client reads the present state
// until its next Sync, write or session.
func (s *Session) Lag() { s.lagTo(s.m.Snapshot()) }

// LagTo simulates a server that has fallen behind: the client reads an earlier state until
// its next Sync, write or session. That state may be older than what the client has read
// already.
func (s *Session) LagTo(past *Snapshot) {
	s.m.mu.Lock()
	s.connect()
	s.m.mu.Unlock()
	s.lagTo(past)
}

func (s *Session) lagTo(past *Snapshot) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.past, s.pastOf = past.tree, s.m.restored
}
