package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/flaked/flaked/internal/core/limits"
)

// MemSession is one client of a Mem. Like a real client, it opens a new session by itself
// after its old one has ended. A client that is dropped without Close leaves its ephemeral
// records until Expire.
type MemSession struct {
	m *Mem

	// Guarded by m.mu.
	id          int64
	closed      bool
	partitioned bool
	fault       func(Call) Fault
	done        func(c Call, result, told error)
	view        memTree // the old tree that reads see; nil means the present one
	viewOf      int     // Mem.restored when view was taken: a server that was restored does not lag
	notice      limits.Notice
}

var _ Store = (*MemSession)(nil)

func (s *MemSession) Hurry(n limits.Notice) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.notice = n
}

// Notice returns the value that Hurry last got, or zero if Hurry was never called.
func (s *MemSession) Notice() limits.Notice {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.notice
}

func (s *MemSession) SessionID() int64 {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.closed || s.partitioned {
		return 0
	}
	s.connect()
	return s.id
}

// connect opens a session if there is none. Called under m.mu.
func (s *MemSession) connect() {
	if s.m.live[s.id] {
		return
	}
	s.m.lastSession++
	s.m.zxid++
	s.id, s.view = s.m.lastSession, nil
	s.m.live[s.id] = true
}

// do runs apply, unless the path is malformed, or a fault, a partition or Close prevents it.
func (s *MemSession) do(ctx context.Context, c Call, apply func(t memTree, x txn) error) error {
	if err := checkCall(c.Op, c.Path); err != nil {
		return err
	}
	unreachable := func(why error) error {
		return fmt.Errorf("%w: %s %s: %w", ErrUnreachable, c.Op, c.Path, why)
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
	if err := s.reach(ctx, c, fault); err != nil {
		s.m.mu.Unlock()
		return unreachable(err)
	}
	if why := refusals[fault]; why != nil {
		s.m.mu.Unlock()
		return fmt.Errorf("%w (%s %s)", why, c.Op, c.Path)
	}
	if fault == FailLate {
		s.m.late = append(s.m.late, lateCall{s, s.id, c, apply})
		s.m.mu.Unlock()
		return unreachable(errFault)
	}
	result := s.serve(c, apply)
	done := s.done
	s.m.mu.Unlock()
	told := result
	switch {
	case fault == FailAfter:
		told = unreachable(errFault)
	case result != nil:
		told = fmt.Errorf("%w: %s %s", result, c.Op, c.Path)
	}
	if done != nil {
		done(c, result, told)
	}
	return told
}

// reach opens a session if there is none. It returns why a call does not reach the server, nil if it does. Called under
// m.mu.
func (s *MemSession) reach(ctx context.Context, c Call, fault Fault) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.partitioned:
		return errPartitioned
	case fault == FailBefore, fault == FailLate && !c.Write():
		return errFault
	}
	s.connect()
	if want, ok := ctx.Value(sessionKey{}).(int64); ok && s.id != want {
		return errOtherSession
	}
	return nil
}

// ask is do for a call with a result. It returns the zero T with every error.
func ask[T any](ctx context.Context, s *MemSession, c Call, apply func(memTree, txn) (T, error)) (T, error) {
	var result, none T
	err := s.do(ctx, c, func(t memTree, x txn) (err error) {
		result, err = apply(t, x)
		return err
	})
	if err != nil {
		return none, err
	}
	return result, nil
}

// serve carries out a call in the server. Called under m.mu.
func (s *MemSession) serve(c Call, apply func(memTree, txn) error) error {
	if c.Write() {
		s.m.zxid++ // a failed write takes one as well
	}
	if c.Write() || c.Op == "sync" || s.viewOf != s.m.restored {
		s.view = nil
	}
	tree := s.m.tree
	if s.view != nil {
		tree = s.view
	}
	return apply(tree, txn{zxid: s.m.zxid, now: s.m.clock(), session: s.id})
}

func (s *MemSession) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	return s.get(ctx, path, false)
}

func (s *MemSession) get(ctx context.Context, path string, more bool) ([]byte, Stat, error) {
	r, err := ask(ctx, s, Call{Op: "get", Path: path, More: more}, func(t memTree, _ txn) (Record, error) {
		node, err := t.check(path, AnyVersion)
		if err != nil {
			return Record{}, err
		}
		return Record{Data: slices.Clone(node.data), Stat: node.stat}, nil
	})
	return r.Data, r.Stat, err
}

// GetAll is part of Store. SetFault sees each record as a separate call, so that a test can
// change the data between two reads.
func (s *MemSession) GetAll(ctx context.Context, paths ...string) ([]Record, error) {
	records := make([]Record, len(paths))
	for i, path := range paths {
		data, stat, err := s.get(ctx, path, i < len(paths)-1)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return nil, err
		}
		records[i] = Record{err == nil, data, stat}
	}
	return records, nil
}

func (s *MemSession) Children(ctx context.Context, path string) ([]string, error) {
	return ask(ctx, s, Call{Op: "children", Path: path}, func(t memTree, _ txn) ([]string, error) {
		node, err := t.check(path, AnyVersion)
		if err != nil {
			return nil, err
		}
		return slices.Sorted(maps.Keys(node.kids)), nil
	})
}

func (s *MemSession) Create(ctx context.Context, path string, data []byte, kind Kind) (string, error) {
	if err := checkCreate(path, data, kind); err != nil {
		return "", err
	}
	return ask(ctx, s, Call{Op: "create", Path: path, Data: data}, func(t memTree, x txn) (string, error) {
		return t.create(x, path, data, kind)
	})
}

func (s *MemSession) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	if err := checkSize("set", path, len(data)); err != nil {
		return Stat{}, err
	}
	return ask(ctx, s, Call{Op: "set", Path: path, Data: data}, func(t memTree, x txn) (Stat, error) {
		return t.set(x, path, data, version)
	})
}

func (s *MemSession) Delete(ctx context.Context, path string, version int32) error {
	return s.do(ctx, Call{Op: "delete", Path: path}, func(t memTree, _ txn) error {
		return t.delete(path, version)
	})
}

func (s *MemSession) Multi(ctx context.Context, ops ...Op) error {
	if err := checkOps(ops); err != nil || len(ops) == 0 {
		return err
	}
	return s.do(ctx, Call{Op: "multi", Path: "/", Ops: ops}, func(t memTree, x txn) error {
		failed, err := t.multi(x, ops)
		if err != nil {
			return fmt.Errorf("%w: %s", err, describeOp(failed, ops[failed]))
		}
		return nil
	})
}

func (s *MemSession) Sync(ctx context.Context, path string) error {
	return s.do(ctx, Call{Op: "sync", Path: path}, func(memTree, txn) error { return nil })
}

func (s *MemSession) EnsureRoot(ctx context.Context, paths ...string) error {
	if err := checkRoot(paths); err != nil {
		return err
	}
	return s.do(ctx, Call{Op: "ensure root", Path: "/"}, func(t memTree, x txn) error {
		for _, p := range append([]string{"/"}, paths...) {
			if _, err := t.create(x, p, nil, Persistent); err != nil && !errors.Is(err, ErrExists) {
				return err
			}
		}
		return nil
	})
}

func (s *MemSession) Close() error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if !s.closed && !s.partitioned {
		s.m.expire(s.id) // a partition keeps the session alive
	}
	s.closed = true
	return nil
}
