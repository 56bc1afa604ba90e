package store

import (
	"context"
	"errors"
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
		expire: func(t *testing.T, s Store) {
			id := s.SessionID()
			m.Access(func(d *MemData) { d.End(id) })
		},
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
			for _, tc := range slices.Concat(ofRecords, ofSessions) {
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
	if _, stat, err := c.Get(c.ctx(), path); err != nil || int(stat.NumChildren) != len(want) {
		c.Fatalf("%s has %d children, want %d: %v", path, stat.NumChildren, len(want), err)
	}
}

// conformanceCase is a course of calls that all stores answer alike.
type conformanceCase struct {
	name string
	bare bool // without EnsureRoot
	run  func(c *checker)
}

// ofRecords are those of single records.
var ofRecords = []conformanceCase{
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
		if a.Czxid != a.Mzxid || a.Ctime != a.Mtime || a.EphemeralOwner != 0 || b.Czxid <= a.Czxid {
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
			return stat.Cversion
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
}
