package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ofSessions are those of transactions, of several sessions, and of calls that are refused.
var ofSessions = []conformanceCase{
	{name: "multi applies all", run: func(c *checker) {
		c.create("/a", "0", Persistent)
		c.wantErr(c.Multi(c.ctx()), nil)
		c.wantErr(c.Multi(c.ctx(),
			CheckOp{Path: "/a", Version: 0},
			SetOp{Path: "/a", Data: []byte("1"), Version: 0},
			CheckOp{Path: "/a", Version: 1}, // sees the set before it
			CreateOp{Path: "/b", Data: []byte("b")},
			CreateOp{Path: "/b/c", Data: []byte("c")},
			SetOp{Path: "/b", Data: []byte("b1"), Version: 0},
			CheckOp{Path: "/b", Version: AnyVersion},
		), nil)
		a, b := c.wantData("/a", "1", 1), c.wantData("/b", "b1", 1)
		bc := c.wantData("/b/c", "c", 0)
		if a.Mzxid != b.Czxid || b.Czxid != b.Mzxid || bc.Czxid != a.Mzxid || a.Mtime != bc.Ctime {
			c.Errorf("not one transaction: %+v, %+v, %+v", a, b, bc)
		}
		c.wantErr(c.Multi(c.ctx(), DeleteOp{Path: "/b/c"}, DeleteOp{Path: "/b", Version: 1}, CreateOp{Path: "/b"}), nil)
		c.wantData("/b", "", 0)
		c.wantChildren("/b")
	}},
	{name: "multi applies none, and says which failed first", run: func(c *checker) {
		c.create("/a", "0", Persistent)
		for i, tc := range []struct {
			want error
			at   int
			ops  []Op
		}{
			{ErrBadVersion, 0, []Op{CheckOp{Path: "/a", Version: 5}, CreateOp{Path: "/b"}}},
			{ErrBadVersion, 1, []Op{CreateOp{Path: "/b"}, SetOp{Path: "/a", Version: 5}, CreateOp{Path: "/a"}}},
			{ErrExists, 2, []Op{
				SetOp{Path: "/a", Data: []byte("1")}, CreateOp{Path: "/b"}, CreateOp{Path: "/a"},
				CheckOp{Path: "/none"},
			}},
			{ErrNoNode, 1, []Op{
				CreateOp{Path: "/b"}, CheckOp{Path: "/none", Version: AnyVersion}, SetOp{Path: "/a", Version: 5},
			}},
			{ErrNoNode, 2, []Op{CreateOp{Path: "/b"}, CreateOp{Path: "/b/c"}, SetOp{Path: "/none"}}},
			{ErrNoNode, 1, []Op{SetOp{Path: "/a", Data: []byte("1")}, CreateOp{Path: "/none/b"}}},
			{ErrExists, 1, []Op{CreateOp{Path: "/b"}, CreateOp{Path: "/b"}}},
			{ErrBadVersion, 1, []Op{CreateOp{Path: "/b"}, DeleteOp{Path: "/a", Version: 5}}},
			{ErrNoNode, 1, []Op{DeleteOp{Path: "/a"}, DeleteOp{Path: "/a", Version: AnyVersion}}},
			{ErrNotEmpty, 2, []Op{CreateOp{Path: "/b"}, CreateOp{Path: "/b/c"}, DeleteOp{Path: "/b"}}},
		} {
			err := c.Multi(c.ctx(), tc.ops...)
			c.wantErr(err, tc.want)
			for _, other := range []error{ErrNoNode, ErrExists, ErrBadVersion, ErrNotEmpty} {
				if other != tc.want && errors.Is(err, other) {
					c.Errorf("row %d: %v is also %v", i, err, other)
				}
			}
			if want := fmt.Sprintf("operation %d,", tc.at); !strings.Contains(err.Error(), want) {
				c.Errorf("row %d: %q lacks %q", i, err, want)
			}
			c.wantData("/a", "0", 0)
			c.wantNone("/b")
			c.wantChildren("/", "a", "live", "tickets", "workers")
		}
	}},
	{name: "ephemeral records belong to a session", run: func(c *checker) {
		c.create("/live/0000", "x", Ephemeral)
		stat := c.wantData("/live/0000", "x", 0)
		if stat.EphemeralOwner == 0 || stat.EphemeralOwner != c.SessionID() {
			c.Errorf("owner %#x, session %#x", stat.EphemeralOwner, c.SessionID())
		}
		_, err := c.Create(c.ctx(), "/live/0000/below", nil, Persistent)
		if err == nil || errors.Is(err, ErrNoNode) || errors.Is(err, ErrUnreachable) {
			c.Errorf("a child below an ephemeral record: %v", err)
		}
		other := &checker{c.T, c.world, c.open(c.T)}
		if got := other.wantData("/live/0000", "x", 0); got != stat {
			c.Errorf("others see %+v, not %+v", got, stat)
		}
		if other.SessionID() == 0 || other.SessionID() == c.SessionID() {
			c.Errorf("sessions %#x and %#x", other.SessionID(), c.SessionID())
		}
		other.create("/live/0001", "", Ephemeral)
		_, err = other.Create(c.ctx(), "/live/0000", nil, Ephemeral)
		c.wantErr(err, ErrExists)
		_, err = other.Set(c.ctx(), "/live/0000", []byte("y"), 0) // any session may write to it
		c.wantErr(err, nil)
		if got := c.wantData("/live/0000", "y", 1); got.EphemeralOwner != stat.EphemeralOwner {
			c.Errorf("a write made it %#x's", got.EphemeralOwner)
		}
		c.wantErr(other.Close(), nil)
		c.wantErr(c.Sync(c.ctx(), "/live"), nil)
		c.wantChildren("/live", "0000")
	}},
	{name: "multi replaces another session's ephemeral record", run: func(c *checker) {
		other := &checker{c.T, c.world, c.open(c.T)}
		other.create("/live/0000", "", Ephemeral)
		c.wantErr(c.Sync(c.ctx(), "/live"), nil)
		change := []Op{DeleteOp{Path: "/live/0000"}, CreateOp{Path: "/live/0000", Data: []byte("x"), Ephemeral: true}}
		c.wantErr(c.Multi(c.ctx(), change...), nil)
		if stat := c.wantData("/live/0000", "x", 0); stat.EphemeralOwner == 0 || stat.EphemeralOwner != c.SessionID() {
			c.Errorf("owner %#x, session %#x", stat.EphemeralOwner, c.SessionID())
		}
		c.wantErr(other.Close(), nil)
		c.wantErr(c.Sync(c.ctx(), "/live"), nil)
		c.wantData("/live/0000", "x", 0)
		c.wantErr(c.Close(), nil)
		c.Store = c.open(c.T)
		c.wantErr(c.Sync(c.ctx(), "/live"), nil)
		c.wantNone("/live/0000")
	}},
	{name: "an expired session takes its ephemeral records along", run: func(c *checker) {
		owner := &checker{c.T, c.world, c.open(c.T)}
		owner.create("/live/0000", "", Ephemeral)
		owner.create("/workers/0000", "", Persistent)
		old := owner.SessionID()
		c.expire(c.T, owner.Store)
		c.wantErr(c.Sync(c.ctx(), "/live"), nil)
		c.wantChildren("/live")
		c.wantChildren("/workers", "0000")
		owner.create("/live/0000", "", Ephemeral) // opens a new session
		stat := owner.wantData("/live/0000", "", 0)
		if id := owner.SessionID(); id == old || id == 0 || stat.EphemeralOwner != id {
			c.Errorf("session %#x before, %#x after, owner %#x", old, id, stat.EphemeralOwner)
		}
	}},
	{name: "one session's write is there for another after a sync", run: func(c *checker) {
		other := &checker{c.T, c.world, c.open(c.T)}
		for i := range int32(20) {
			if i == 0 {
				c.create("/cluster", "0", Persistent)
			} else {
				_, err := c.Set(c.ctx(), "/cluster", []byte(fmt.Sprint(i)), i-1)
				c.wantErr(err, nil)
			}
			c.wantErr(other.Sync(c.ctx(), "/cluster"), nil)
			other.wantData("/cluster", fmt.Sprint(i), i)
		}
	}},
	{name: "one of many wins a versioned write", run: func(c *checker) {
		c.create("/cluster", "", Persistent)
		const n = 8
		errs := make(chan error, n)
		for range n {
			s := c.open(c.T)
			ctx := c.ctx()
			go func() {
				_, err := s.Set(ctx, "/cluster", []byte("x"), 0)
				errs <- err
			}()
		}
		won := 0
		for range n {
			if err := <-errs; err == nil {
				won++
			} else {
				c.wantErr(err, ErrBadVersion)
			}
		}
		if won != 1 {
			c.Errorf("%d have won", won)
		}
	}},
	{name: "a context that is done, and a closed store", run: func(c *checker) {
		ctx, cancel := context.WithCancel(c.Context())
		cancel()
		_, err := c.Create(ctx, "/x", nil, Persistent)
		c.wantErr(err, ErrUnreachable)
		if !errors.Is(err, context.Canceled) {
			c.Errorf("%v does not tell that the caller has given up", err)
		}
		c.wantNone("/x")
		c.wantErr(c.Close(), nil)
		c.wantErr(c.Close(), nil)
		if id := c.SessionID(); id != 0 {
			c.Errorf("session %#x after Close", id)
		}
		_, _, err = c.Get(c.ctx(), "/x")
		c.wantErr(err, ErrUnreachable)
		c.wantErr(c.Sync(c.ctx(), "/x"), ErrUnreachable)
		c.wantErr(c.EnsureRoot(c.ctx(), parents...), ErrUnreachable)
	}},
	{name: "malformed calls", run: func(c *checker) {
		bad := func(err error) {
			c.Helper()
			for _, sentinel := range []error{ErrNoNode, ErrExists, ErrBadVersion, ErrUnreachable, ErrDenied} {
				if err == nil || errors.Is(err, sentinel) {
					c.Errorf("got %v", err)
				}
			}
		}
		for _, path := range []string{"", "x", "/x/", "//x", "/./x", "/x/..", "/\x00"} {
			_, err := c.Create(c.ctx(), path, nil, Persistent)
			bad(err)
			_, err = c.Create(c.ctx(), path, nil, PersistentSequential)
			bad(err)
			_, _, err = c.Get(c.ctx(), path)
			bad(err)
			_, err = c.Set(c.ctx(), path, nil, 0)
			bad(err)
			_, err = c.Children(c.ctx(), path)
			bad(err)
			bad(c.Delete(c.ctx(), path, 0))
			bad(c.Sync(c.ctx(), path))
			bad(c.Multi(c.ctx(), CheckOp{Path: path}))
			bad(c.EnsureRoot(c.ctx(), path))
		}
		_, err := c.Create(c.ctx(), "/", nil, Persistent)
		bad(err)
		_, err = c.Create(c.ctx(), "/x", nil, Kind(3))
		bad(err)
		bad(c.Multi(c.ctx(), nil))
		bad(c.Multi(c.ctx(), CreateOp{Path: "/x", Data: make([]byte, maxRequest)}))
		c.wantNone("/x")
	}},
}
