package memzk

import (
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
)

// Session is one client of a Server. Like a real client, it opens a new session by itself
// after its old one has ended. A client that is dropped without Close leaves its ephemeral
// records until Expire.
type Session struct {
	m     *Server
	inner *store.MemSession

	// Guarded by m.mu.
	id          int64 // of the session, 0 before the first
	closed      bool
	partitioned bool
	fault       func(Call) Fault
	done        func(c Call, result, told error)
	past        store.MemTree // what reads see of a server that lags; nil if it does not
	pastOf      int           // Server.restored when past was set: a server that was restored does not lag
	notice      limits.Notice
}

var _ store.Store = (*Session)(nil)

func (s *Session) SetNotice(n limits.Notice) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.notice = n
}

// Notice returns the value that SetNotice last got, or zero if SetNotice was never called.
func (s *Session) Notice() limits.Notice {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.notice
}

func (s *Session) SessionID() int64 {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.closed || s.partitioned {
		return 0
	}
	s.connect()
	return s.id
}

// connect opens a session if there is none. Called under m.mu.
func (s *Session) connect() {
	if id := s.inner.SessionID(); id != s.id {
		s.id, s.past = id, nil
	}
}

// do runs apply, unless a fault, a partition or Close prevents it. apply gets the tree that a server which lags still
// has, nil if it does not lag.
func (s *Session) do(ctx context.Context, c Call, apply func(ctx context.Context, past store.MemTree) error) error {
	unreachable := func(why error) error {
		return fmt.Errorf("%w: %s %s: %w", store.ErrUnreachable, c.Op, c.Path, why)
	}
	s.m.mu.Lock()
	ask := s.fault
	s.m.mu.Unlock()
	fault := NoFault
	if ask != nil {
		fault = ask(c) // not under mu
	}
	if err := ctx.Err(); err != nil {
		return unreachable(err)
	}

	s.m.mu.Lock()
	if err := s.reach(c, fault); err != nil {
		s.m.mu.Unlock()
		return unreachable(err)
	}
	if why := refusals[fault]; why != nil {
		s.m.mu.Unlock()
		return fmt.Errorf("%w (%s %s)", why, c.Op, c.Path)
	}
	if fault == FailLate {
		s.m.late = append(s.m.late, lateCall{s, s.id, c, func() error {
			return apply(context.WithoutCancel(ctx), nil) // the client no longer waits
		}})
		s.m.mu.Unlock()
		return unreachable(errFault)
	}
	if c.Write() || c.Op == "sync" || s.pastOf != s.m.restored {
		s.past = nil
	}
	past, done := s.past, s.done
	s.m.mu.Unlock()
	result := apply(ctx, past)
	if errors.Is(result, store.ErrUnreachable) {
		return result // the context's session has ended
	}
	told := result
	if fault == FailAfter {
		told = unreachable(errFault)
	}
	if done != nil {
		done(c, result, told)
	}
	return told
}

// reach opens a session if there is none. It returns why a call does not reach the server, nil if it does. Called under
// m.mu.
func (s *Session) reach(c Call, fault Fault) error {
	switch {
	case s.closed:
		return store.ErrClosed
	case s.partitioned:
		return errPartitioned
	case fault == FailBefore, fault == FailLate && !c.Write():
		return errFault
	}
	s.connect()
	return nil
}

func (s *Session) Get(ctx context.Context, path string) ([]byte, store.Stat, error) {
	return s.get(ctx, path, false)
}

// get gets a record. more is Call.More.
func (s *Session) get(ctx context.Context, path string, more bool) ([]byte, store.Stat, error) {
	var r store.Record
	c := Call{Op: "get", Path: path, More: more}
	err := s.do(ctx, c, func(ctx context.Context, past store.MemTree) (err error) {
		r.Data, r.Stat, err = s.inner.Get(ctx, path)
		if past != nil && !errors.Is(err, store.ErrUnreachable) {
			r.Data, r.Stat, err = past.Get(path)
		}
		return err
	})
	if err != nil {
		return nil, store.Stat{}, err
	}
	return r.Data, r.Stat, nil
}

// GetAll is part of store.Store. SetFault sees each record as a separate call, so that a test can
// change the data between two reads.
func (s *Session) GetAll(ctx context.Context, paths ...string) ([]store.Record, error) {
	records := make([]store.Record, len(paths))
	for i, path := range paths {
		data, stat, err := s.get(ctx, path, i < len(paths)-1)
		if err != nil && !errors.Is(err, store.ErrNoNode) {
			return nil, err
		}
		records[i] = store.Record{Found: err == nil, Data: data, Stat: stat}
	}
	return records, nil
}

func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	var names []string
	err := s.do(ctx, Call{Op: "children", Path: path}, func(ctx context.Context, past store.MemTree) (err error) {
		names, err = s.inner.Children(ctx, path)
		if past != nil && !errors.Is(err, store.ErrUnreachable) {
			names, err = past.Children(path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

func (s *Session) Create(ctx context.Context, path string, data []byte, kind store.Kind) (string, error) {
	var made string
	c := Call{Op: "create", Path: path, Data: data}
	err := s.do(ctx, c, func(ctx context.Context, _ store.MemTree) (err error) {
		made, err = s.inner.Create(ctx, path, data, kind)
		return err
	})
	if err != nil {
		return "", err
	}
	return made, nil
}

func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (store.Stat, error) {
	var stat store.Stat
	err := s.do(ctx, Call{Op: "set", Path: path, Data: data}, func(ctx context.Context, _ store.MemTree) (err error) {
		stat, err = s.inner.Set(ctx, path, data, version)
		return err
	})
	if err != nil {
		return store.Stat{}, err
	}
	return stat, nil
}

func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	return s.do(ctx, Call{Op: "delete", Path: path}, func(ctx context.Context, _ store.MemTree) error {
		return s.inner.Delete(ctx, path, version)
	})
}

func (s *Session) Multi(ctx context.Context, ops ...store.Op) error {
	if len(ops) == 0 {
		return nil
	}
	return s.do(ctx, Call{Op: "multi", Path: "/", Ops: ops}, func(ctx context.Context, _ store.MemTree) error {
		return s.inner.Multi(ctx, ops...)
	})
}

func (s *Session) Sync(ctx context.Context, path string) error {
	return s.do(ctx, Call{Op: "sync", Path: path}, func(ctx context.Context, _ store.MemTree) error {
		return s.inner.Sync(ctx, path)
	})
}

func (s *Session) EnsureRoot(ctx context.Context, paths ...string) error {
	return s.do(ctx, Call{Op: "ensure root", Path: "/"}, func(ctx context.Context, _ store.MemTree) error {
		return s.inner.EnsureRoot(ctx, paths...)
	})
}

// Close ends the session. A partition keeps the session alive.
func (s *Session) Close() error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.closed = true
	if s.partitioned {
		return nil
	}
	return s.inner.Close()
}
