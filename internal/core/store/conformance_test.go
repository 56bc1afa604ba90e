package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// parents are the parent records that the tests use.
var parents = []string{"/tickets", "/workers", "/live"}

// world is one server under test.
type world struct {
	open   func(t *testing.T) Store    // a new client of the same cluster
	expire func(t *testing.T, s Store) // ends the session in the server. The client opens a new one
}

func memWorld(t *testing.T) world {
	m := NewMem(nil)
	return world{
		open: func(t *testing.T) Store {
			s := m.Session()
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		expire: func(t *testing.T, s Store) { s.(*MemSession).Expire() },
	}
}

// TestMemAndZooKeeperBehaveAlike runs the same table against both stores, so that tests and simulations
// with Mem hold for ZooKeeper.
func TestMemAndZooKeeperBehaveAlike(t *testing.T) {
	for _, store := range []struct {
		name string
		make func(t *testing.T) world
	}{
		{"Mem", memWorld},
		{"ZooKeeper", zkWorld},
	} {
		t.Run(store.name, func(t *testing.T) {
			for _, tc := range conformance {
				t.Run(tc.name, func(t *testing.T) {
					w := store.make(t)
					s := w.open(t)
					if tc.bare {
						tc.run(&checker{t, w, s})
						return
					}
					if err := s.EnsureRoot(t.Context(), parents...); err != nil {
						t.Fatal(err)
					}
					tc.run(&checker{t, w, s})
				})
			}
		})
	}
}

// checker has the helpers of the table.
type checker struct {
	*testing.T
	world
	Store
}

func (c *checker) ctx() context.Context {
	ctx, cancel := context.WithTimeout(c.Context(), 10*time.Second)
	c.Cleanup(cancel)
	return ctx
}

func (c *checker) wantErr(err, want error) {
	c.Helper()
	if !errors.Is(err, want) || (want == nil) != (err == nil) {
		c.Fatalf("got error %v, want %v", err, want)
	}
}

func (c *checker) create(path, data string, kind Kind) string {
	c.Helper()
	made, err := c.Create(c.ctx(), path, []byte(data), kind)
	c.wantErr(err, nil)
	return made
}

func (c *checker) wantData(path, data string, version int32) Stat {
	c.Helper()
	got, stat, err := c.Get(c.ctx(), path)
	c.wantErr(err, nil)
	if string(got) != data || stat.Version != version {
		c.Fatalf("%s holds %q, version %d, want %q, version %d", path, got, stat.Version, data, version)
	}
	return stat
}

func (c *checker) wantNone(path string) {
	c.Helper()
	_, stat, err := c.Get(c.ctx(), path)
	c.wantErr(err, ErrNoNode)
	if stat != (Stat{}) {
		c.Errorf("an absent record has a stat: %+v", stat)
	}
}

func (c *checker) wantChildren(path string, want ...string) {
	c.Helper()
	got, err := c.Children(c.ctx(), path)
	c.wantErr(err, nil)
	if !slices.Equal(got, want) {
		c.Fatalf("%s has children %q, want %q", path, got, want)
	}
	if _, stat, err := c.Get(c.ctx(), path); err != nil || int(stat.Count) != len(want) {
		c.Fatalf("%s has %d children, want %d: %v", path, stat.Count, len(want), err)
	}
}

var conformance = []struct {
	name string
	bare bool // without EnsureRoot
	run  func(c *checker)
}{
	{name: "nothing is there before EnsureRoot", bare: true, run: func(c *checker) {
		c.wantNone("/")
		c.wantNone("/workers")
		_, err := c.Create(c.ctx(), "/workers", nil, Persistent)
		c.wantErr(err, ErrNoNode)
		_, err = c.Create(c.ctx(), "/tickets/n-", nil, PersistentSequential)
		c.wantErr(err, ErrNoNode)
		_, err = c.Children(c.ctx(), "/")
		c.wantErr(err, ErrNoNode)
		c.wantErr(c.EnsureRoot(c.ctx()), nil)
		c.wantChildren("/")
		c.wantErr(c.EnsureRoot(c.ctx(), parents...), nil)
		c.wantChildren("/", "live", "tickets", "workers")
		c.create("/cluster", "x", Persistent)
		c.wantErr(c.EnsureRoot(c.ctx(), parents...), nil) // again, harmless
		c.wantData("/cluster", "x", 0)
		c.wantErr(c.Delete(c.ctx(), "/live", AnyVersion), nil)
		c.wantErr(c.EnsureRoot(c.ctx(), parents...), nil) // makes what is missing
		c.wantChildren("/", "cluster", "live", "tickets", "workers")
		c.wantErr(c.EnsureRoot(c.ctx(), "/sequences", "/sequences/below"), nil)
		c.wantChildren("/sequences", "below")
		c.wantErr(c.EnsureRoot(c.ctx(), "/none/below"), ErrNoNode)
	}},
	{name: "versions begin at 0 and go up by one", run: func(c *checker) {
		c.create("/workers/0000", "a", Persistent)
		first := c.wantData("/workers/0000", "a", 0)
		stat, err := c.Set(c.ctx(), "/workers/0000", []byte("b"), 0)
		c.wantErr(err, nil)
		if stat.Version != 1 || stat.Czxid != first.Czxid || stat.Mzxid <= first.Mzxid ||
			stat.Ctime != first.Ctime || stat.Mtime < first.Mtime {
			c.Errorf("after %+v a write gave %+v", first, stat)
		}
		if got := c.wantData("/workers/0000", "b", 1); got != stat {
			c.Errorf("Set said %+v, Get says %+v", stat, got)
		}
		for _, wrong := range []int32{0, 2, 100, -2} {
			_, err = c.Set(c.ctx(), "/workers/0000", []byte("c"), wrong)
			c.wantErr(err, ErrBadVersion)
		}
		_, err = c.Set(c.ctx(), "/workers/0000", []byte("b"), 1) // the same data count too
		c.wantErr(err, nil)
		c.wantData("/workers/0000", "b", 2)
		_, err = c.Set(c.ctx(), "/workers/0000", []byte("d"), AnyVersion)
		c.wantErr(err, nil)
		c.wantData("/workers/0000", "d", 3)
		c.wantErr(c.Delete(c.ctx(), "/workers/0000", 2), ErrBadVersion)
		c.wantErr(c.Delete(c.ctx(), "/workers/0000", 3), nil)
		c.create("/workers/0000", "e", Persistent)
		c.wantData("/workers/0000", "e", 0) // so slots must never be deleted
	}},
	{name: "stat fields", run: func(c *checker) {
		before := time.Now().UnixMilli()
		c.create("/a", "", Persistent)
		c.create("/b", "", Persistent)
		after := time.Now().UnixMilli()
		a, b := c.wantData("/a", "", 0), c.wantData("/b", "", 0)
		if a.Czxid != a.Mzxid || a.Ctime != a.Mtime || a.Owner != 0 || b.Czxid <= a.Czxid {
			c.Errorf("got %+v, then %+v", a, b)
		}
		if a.Ctime < before || b.Ctime > after {
			c.Errorf("created at %d and %d, which was between %d and %d", a.Ctime, b.Ctime, before, after)
		}
		if a.Czxid>>32 != 0 {
			c.Errorf("a standalone server has leader epoch %d", a.Czxid>>32)
		}
	}},
	{name: "data", run: func(c *checker) {
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		c.create("/bytes", string(every), Persistent)
		c.wantData("/bytes", string(every), 0)
		_, err := c.Create(c.ctx(), "/nil", nil, Persistent)
		c.wantErr(err, nil)
		c.wantData("/nil", "", 0)
		mine := []byte("mine")
		_, err = c.Create(c.ctx(), "/mine", mine, Persistent)
		c.wantErr(err, nil)
		mine[0] = 'X'
		c.wantData("/mine", "mine", 0)
		data, _, err := c.Get(c.ctx(), "/mine")
		c.wantErr(err, nil)
		data[0] = 'X'
		c.wantData("/mine", "mine", 0)
		large := strings.Repeat("x", maxRequest)
		c.create("/large", large, Persistent)
		c.wantData("/large", large, 0)
		_, err = c.Create(c.ctx(), "/larger", []byte(large+"x"), Persistent)
		if err == nil || errors.Is(err, ErrUnreachable) {
			c.Errorf("too much data: %v", err)
		}
		_, err = c.Set(c.ctx(), "/large", []byte(large+"x"), 0)
		if err == nil || errors.Is(err, ErrUnreachable) {
			c.Errorf("too much data: %v", err)
		}
	}},
	{name: "sequential names count all creates of the parent", run: func(c *checker) {
		seq := func(want string) {
			c.Helper()
			if got := c.create("/tickets/n-", "", PersistentSequential); got != "/tickets/"+want {
				c.Fatalf("made %q, want %q", got, want)
			}
		}
		seq("n-0000000000")
		seq("n-0000000001")
		c.create("/tickets/other", "", Persistent) // counts
		seq("n-0000000003")
		if got := c.create("/tickets/m-", "", PersistentSequential); got != "/tickets/m-0000000004" {
			c.Errorf("another prefix made %q", got)
		}
		_, err := c.Create(c.ctx(), "/tickets/other", nil, Persistent) // fails: does not count
		c.wantErr(err, ErrExists)
		seq("n-0000000005")
		c.wantErr(c.Delete(c.ctx(), "/tickets/n-0000000005", AnyVersion), nil) // does not change the count
		c.wantErr(c.Delete(c.ctx(), "/tickets/n-0000000000", AnyVersion), nil)
		seq("n-0000000006")
		c.create("/tickets/e", "", Ephemeral) // counts
		c.wantErr(c.Multi(c.ctx(), CreateOp{Path: "/tickets/x"}, CreateOp{Path: "/tickets/y"}), nil)
		seq("n-0000000010")
		c.wantErr(c.Multi(c.ctx(), CreateOp{Path: "/tickets/z"}, CreateOp{Path: "/tickets/y"}), ErrExists) // undone
		seq("n-0000000011")
		_, err = c.Set(c.ctx(), "/tickets", []byte("x"), AnyVersion) // the parent's own data do not count
		c.wantErr(err, nil)
		c.create("/tickets/x/deep", "", Persistent) // nor does a grandchild
		seq("n-0000000012")
		_, err = c.Create(c.ctx(), "/nowhere/n-", nil, PersistentSequential)
		c.wantErr(err, ErrNoNode)
	}},
	{name: "a parent made again counts from 0", run: func(c *checker) {
		c.create("/tickets/n-", "", PersistentSequential)
		made := c.create("/tickets/n-", "", PersistentSequential)
		c.wantErr(c.Delete(c.ctx(), "/tickets/n-0000000000", 0), nil)
		c.wantErr(c.Delete(c.ctx(), made, 0), nil)
		c.wantErr(c.Delete(c.ctx(), "/tickets", AnyVersion), nil)
		c.wantErr(c.EnsureRoot(c.ctx(), parents...), nil)
		if made := c.create("/tickets/n-", "", PersistentSequential); made != "/tickets/n-0000000000" {
			c.Errorf("made %q", made)
		}
	}},
	{name: "children are sorted", run: func(c *checker) {
		c.wantChildren("/workers")
		for _, name := range []string{"0010", "0002", "10", "b", "a", "0001"} {
			c.create("/workers/"+name, "", Persistent)
		}
		c.create("/workers/a/below", "", Persistent)
		c.wantChildren("/workers", "0001", "0002", "0010", "10", "a", "b")
		c.wantErr(c.Delete(c.ctx(), "/workers/10", AnyVersion), nil)
		c.wantChildren("/workers", "0001", "0002", "0010", "a", "b")
		_, err := c.Children(c.ctx(), "/workers/none")
		c.wantErr(err, ErrNoNode)
	}},
	{name: "children made and deleted change the parent's stat", run: func(c *checker) {
		version := func() int32 {
			c.Helper()
			_, stat, err := c.Get(c.ctx(), "/live")
			c.wantErr(err, nil)
			return stat.Children
		}
		before := version()
		c.create("/live/0001", "", Ephemeral)
		made := version()
		_, err := c.Set(c.ctx(), "/live/0001", []byte("x"), AnyVersion)
		c.wantErr(err, nil)
		set := version()
		c.wantErr(c.Delete(c.ctx(), "/live/0001", AnyVersion), nil)
		if deleted := version(); made == before || set != made || deleted == made || deleted == before {
			c.Errorf("%d, %d with a child, %d after it was set, %d after it was deleted", before, made, set, deleted)
		}
	}},
	{name: "several records are read at once", run: func(c *checker) {
		c.create("/workers/0001", "one", Persistent)
		c.create("/workers/0003", "three", Persistent)
		got, err := c.GetAll(c.ctx(), "/workers/0003", "/workers/0002", "/workers/0001", "/workers/0003")
		c.wantErr(err, nil)
		three, one := c.wantData("/workers/0003", "three", 0), c.wantData("/workers/0001", "one", 0)
		want := []Record{{true, []byte("three"), three}, {}, {true, []byte("one"), one}, {true, []byte("three"), three}}
		if !reflect.DeepEqual(got, want) {
			c.Errorf("got %+v\nwant %+v", got, want)
		}
		_, err = c.GetAll(c.ctx(), "/workers/0001", "workers")
		if err == nil {
			c.Error("a path without a slash is read")
		}
		none, err := c.GetAll(c.ctx())
		c.wantErr(err, nil)
		if len(none) != 0 {
			c.Errorf("got %+v", none)
		}
	}},
	{name: "what is not there, and what is", run: func(c *checker) {
		c.wantNone("/none")
		c.wantNone("/none/below")
		_, err := c.Set(c.ctx(), "/none", nil, 0)
		c.wantErr(err, ErrNoNode)
		_, err = c.Set(c.ctx(), "/none", nil, AnyVersion)
		c.wantErr(err, ErrNoNode)
		c.wantErr(c.Delete(c.ctx(), "/none", AnyVersion), ErrNoNode)
		_, err = c.Create(c.ctx(), "/none/below", nil, Persistent)
		c.wantErr(err, ErrNoNode)
		c.create("/x", "first", Persistent)
		for _, kind := range []Kind{Persistent, Ephemeral} {
			_, err = c.Create(c.ctx(), "/x", []byte("second"), kind)
			c.wantErr(err, ErrExists)
		}
		c.wantData("/x", "first", 0)
		c.create("/x/y", "", Persistent)
		c.wantErr(c.Delete(c.ctx(), "/x", 7), ErrBadVersion) // the version is checked first
		c.wantErr(c.Delete(c.ctx(), "/x", AnyVersion), ErrNotEmpty)
		c.wantErr(c.Delete(c.ctx(), "/x/y", 0), nil)
		c.wantErr(c.Delete(c.ctx(), "/x", 0), nil)
		c.wantErr(c.Sync(c.ctx(), "/none"), nil)
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
		} {
			err := c.Multi(c.ctx(), tc.ops...)
			c.wantErr(err, tc.want)
			for _, other := range []error{ErrNoNode, ErrExists, ErrBadVersion} {
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
		if stat.Owner == 0 || stat.Owner != c.SessionID() {
			c.Errorf("owner %#x, session %#x", stat.Owner, c.SessionID())
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
		if got := c.wantData("/live/0000", "y", 1); got.Owner != stat.Owner {
			c.Errorf("a write made it %#x's", got.Owner)
		}
		c.wantErr(other.Close(), nil)
		c.wantErr(c.Sync(c.ctx(), "/live"), nil)
		c.wantChildren("/live", "0000")
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
		if id := owner.SessionID(); id == old || id == 0 || stat.Owner != id {
			c.Errorf("session %#x before, %#x after, owner %#x", old, id, stat.Owner)
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
}
