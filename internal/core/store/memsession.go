package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flaked/flaked/internal/core/limits"
)

// MemSession is one client of a Mem. Like a real client, it opens a new session by itself
// after its old one has ended. A client that is dropped without Close leaves its ephemeral
// records.
type MemSession struct {
	m *Mem

	// Guarded by m.mu.
	id     int64
	closed bool
}

var _ Store = (*MemSession)(nil)

// SetNotice does nothing: a Mem answers at once.
func (s *MemSession) SetNotice(limits.Notice) {}

func (s *MemSession) SessionID() int64 {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.closed {
		return 0
	}
	s.connect()
	return s.id
}

// connect opens a session if there is none. Called under m.mu.
func (s *MemSession) connect() {
	if !s.m.data.Live[s.id] {
		s.id = s.m.data.open()
	}
}

// do runs apply, unless the path is malformed, the context is done, or the client is closed. A write takes a zxid, even
// if it fails.
func (s *MemSession) do(ctx context.Context, op, path string, write bool, apply func(MemTree, txn) error) error {
	if err := checkCall(op, path); err != nil {
		return err
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if err := s.reach(ctx); err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrUnreachable, op, path, err)
	}
	d := &s.m.data
	if write {
		d.Zxid++
	}
	if err := apply(d.Tree, txn{zxid: d.Zxid, now: s.m.clock(), session: s.id}); err != nil {
		return fmt.Errorf("%w: %s %s", err, op, path)
	}
	return nil
}

// reach opens a session if there is none. It returns why a call does not reach the server, nil if it does. Called under
// m.mu.
func (s *MemSession) reach(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed {
		return ErrClosed
	}
	s.connect()
	if want, ok := ctx.Value(sessionKey{}).(int64); ok && s.id != want {
		return errOtherSession
	}
	return nil
}

func (s *MemSession) Get(ctx context.Context, path string) (data []byte, stat Stat, err error) {
	err = s.do(ctx, "get", path, false, func(t MemTree, _ txn) (err error) {
		data, stat, err = t.Get(path)
		return err
	})
	return data, stat, err
}

func (s *MemSession) GetAll(ctx context.Context, paths ...string) ([]Record, error) {
	records := make([]Record, len(paths))
	for i, path := range paths {
		data, stat, err := s.Get(ctx, path)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return nil, err
		}
		records[i] = Record{err == nil, data, stat}
	}
	return records, nil
}

func (s *MemSession) Children(ctx context.Context, path string) (names []string, err error) {
	err = s.do(ctx, "children", path, false, func(t MemTree, _ txn) (err error) {
		names, err = t.Children(path)
		return err
	})
	return names, err
}

func (s *MemSession) Create(ctx context.Context, path string, data []byte, kind Kind) (made string, err error) {
	if err := checkCreate(path, data, kind); err != nil {
		return "", err
	}
	err = s.do(ctx, "create", path, true, func(t MemTree, x txn) (err error) {
		made, err = t.create(x, path, data, kind)
		return err
	})
	return made, err
}

func (s *MemSession) Set(ctx context.Context, path string, data []byte, version int32) (stat Stat, err error) {
	if err := checkSize("set", path, len(data)); err != nil {
		return Stat{}, err
	}
	err = s.do(ctx, "set", path, true, func(t MemTree, x txn) (err error) {
		stat, err = t.set(x, path, data, version)
		return err
	})
	return stat, err
}

func (s *MemSession) Delete(ctx context.Context, path string, version int32) error {
	return s.do(ctx, "delete", path, true, func(t MemTree, _ txn) error { return t.delete(path, version) })
}

func (s *MemSession) Multi(ctx context.Context, ops ...Op) error {
	if err := checkOps(ops); err != nil || len(ops) == 0 {
		return err
	}
	return s.do(ctx, "multi", "/", true, func(t MemTree, x txn) error {
		failed, err := t.multi(x, ops)
		if err != nil {
			return fmt.Errorf("%w: %s", err, describeOp(failed, ops[failed]))
		}
		return nil
	})
}

func (s *MemSession) Sync(ctx context.Context, path string) error {
	return s.do(ctx, "sync", path, false, func(MemTree, txn) error { return nil })
}

func (s *MemSession) EnsureRoot(ctx context.Context, paths ...string) error {
	if err := checkRoot(paths); err != nil {
		return err
	}
	return s.do(ctx, "ensure root", "/", true, func(t MemTree, x txn) error {
		for _, p := range slices.Concat([]string{"/"}, paths) {
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
	s.m.data.End(s.id)
	s.closed = true
	return nil
}
