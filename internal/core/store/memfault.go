package store

import (
	"errors"
	"slices"
)

// Call describes one call to a store, for SetFault and SetDone.
type Call struct {
	Op   string // get, children, create, set, delete, multi, sync, ensure root
	Path string // "/" for multi and ensure root
	Data []byte // of a create or set; do not modify it
	Ops  []Op   // of a multi
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
	return c.Path == path || slices.ContainsFunc(c.Ops, func(op Op) bool {
		_, of, _ := opParts(op)
		return of == path
	})
}

// Fault is a failure that SetFault injects into a call.
type Fault int

const (
	// NoFault lets the call through.
	NoFault Fault = iota
	// FailBefore loses the request: the server does not apply it, and the caller gets
	// ErrUnreachable.
	FailBefore
	// FailAfter loses the acknowledgement: the server applies the call, and the caller gets
	// ErrUnreachable.
	FailAfter
	// FailLate delays the request, and the caller gets ErrUnreachable at once. Deliver
	// applies a delayed write if its session is still alive then. A delayed read has no
	// effect.
	FailLate
	// FailQuota and FailLocal refuse the request: the server does not apply it, and the caller gets ErrQuota or
	// ErrLocalSession.
	FailQuota
	FailLocal
)

var refusals = map[Fault]error{FailQuota: ErrQuota, FailLocal: ErrLocalSession}

var (
	errFault       = errors.New("injected fault")
	errPartitioned = errors.New("partitioned")
)

// SetFault makes every call ask f which fault to inject. f may use the Mem and its
// sessions. A nil f injects no faults.
func (s *MemSession) SetFault(f func(Call) Fault) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.fault = f
}

// SetDone makes f observe every call that the server has carried out. result is the outcome
// on the server, and told is the error that the client gets. The two differ if the answer
// is lost. f runs before the call returns, or in Deliver for a delayed write. f may use the
// Mem and its sessions. A nil f ends the observation.
func (s *MemSession) SetDone(f func(c Call, result, told error)) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.done = f
}

// Partition cuts the client off: its calls fail at once and are not applied.
// Its session lives on until Expire.
func (s *MemSession) Partition() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.partitioned = true
}

// Heal ends Partition.
func (s *MemSession) Heal() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.partitioned = false
}

// Expire ends the session in the server and removes its ephemeral records. The client opens
// a new session at its next use.
func (s *MemSession) Expire() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.expire(s.id)
}

// Lag simulates a server that falls behind from now on: the client reads the present state
// until its next Sync, write or session.
func (s *MemSession) Lag() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.view, s.viewOf = s.m.tree.clone(), s.m.restored
}

// LagTo simulates a server that has fallen behind: the client reads an earlier state until
// its next Sync, write or session. That state may be older than what the client has read
// already.
func (s *MemSession) LagTo(past *MemSnapshot) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.connect()
	s.view, s.viewOf = past.tree.clone(), s.m.restored
}
