package memzk

import (
	"errors"
	"math"
	"testing"

	"github.com/flaked/flaked/internal/core/store"
)

var parents = []string{"/tickets", "/workers", "/live"}

// memNow is the time of every Server in these tests, in Unix milliseconds.
const memNow = 1_700_000_000_000

func newMem(t *testing.T) (*Server, *Session) {
	t.Helper()
	m := New(func() int64 { return memNow })
	s := m.Session()
	if err := s.EnsureRoot(t.Context(), parents...); err != nil {
		t.Fatal(err)
	}
	return m, s
}

func mustCreate(t *testing.T, s store.Store, path string, kind store.Kind) string {
	t.Helper()
	made, err := s.Create(t.Context(), path, nil, kind)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func exists(t *testing.T, s store.Store, path string) bool {
	t.Helper()
	_, _, err := s.Get(t.Context(), path)
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		t.Fatal(err)
	}
	return err == nil
}

func TestInjectedFaultsDecideWhetherACallIsApplied(t *testing.T) {
	for _, tc := range []struct {
		fault   Fault
		err     error
		applied bool
	}{
		{NoFault, nil, true},
		{FailBefore, store.ErrUnreachable, false},
		{FailAfter, store.ErrUnreachable, true},
	} {
		m, s := newMem(t)
		other := m.Session()
		var asked []Call
		s.SetFault(func(c Call) Fault {
			asked = append(asked, c)
			_ = other.SessionID() // the hook may use the server
			return tc.fault
		})
		_, err := s.Create(t.Context(), "/x", nil, store.Persistent)
		if !errors.Is(err, tc.err) || exists(t, other, "/x") != tc.applied {
			t.Errorf("fault %d: %v, applied %v", tc.fault, err, exists(t, other, "/x"))
		}
		if len(asked) != 1 || asked[0].Op != "create" || asked[0].Path != "/x" || !asked[0].Write() {
			t.Errorf("fault %d: asked about %+v", tc.fault, asked)
		}
		s.SetFault(nil)
		if exists(t, s, "/x") != tc.applied {
			t.Errorf("fault %d does not end", tc.fault)
		}
	}
	_, s := newMem(t)
	s.SetFault(func(c Call) Fault {
		if c.Write() {
			t.Errorf("%+v is a write", c)
		}
		return FailAfter
	})
	if _, _, err := s.Get(t.Context(), "/"); !errors.Is(err, store.ErrUnreachable) {
		t.Error(err)
	}
	if _, err := s.Children(t.Context(), "/none"); !errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrNoNode) {
		t.Error(err)
	}
}

// A write that its client has given up on is still applied, unless its session has ended.
func TestDelayedWriteAppliesUnlessItsSessionEnded(t *testing.T) {
	m, s := newMem(t)
	other := m.Session()
	late := func(path string) {
		t.Helper()
		_, err := s.Create(t.Context(), path, nil, store.Persistent)
		if !errors.Is(err, store.ErrUnreachable) || exists(t, other, path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	mustCreate(t, s, "/x", store.Persistent)
	s.SetFault(func(Call) Fault { return FailLate })
	late("/a")
	if _, err := s.Set(t.Context(), "/x", []byte("late"), 0); !errors.Is(err, store.ErrUnreachable) {
		t.Error(err)
	}
	if _, _, err := s.Get(t.Context(), "/x"); !errors.Is(err, store.ErrUnreachable) {
		t.Error(err)
	}
	if _, err := other.Set(t.Context(), "/x", []byte("in time"), 0); err != nil {
		t.Error(err)
	}
	m.Deliver()
	data, _, err := other.Get(t.Context(), "/x")
	if !exists(t, other, "/a") || string(data) != "in time" || err != nil {
		t.Errorf("/x is %q, %v", data, err)
	}
	late("/b")
	s.Expire()
	m.Deliver()
	if exists(t, other, "/b") {
		t.Error("written by a session that had ended")
	}
}

func TestMemPartitionAndExpiry(t *testing.T) {
	m, s := newMem(t)
	other := m.Session()
	mustCreate(t, s, "/live/0000", store.Ephemeral)
	old := s.SessionID()

	s.Partition()
	_, err := s.Create(t.Context(), "/x", nil, store.Persistent)
	if !errors.Is(err, store.ErrUnreachable) || exists(t, other, "/x") {
		t.Errorf("created through a partition: %v", err)
	}
	if s.SessionID() != 0 || !exists(t, other, "/live/0000") {
		t.Error("the partition is the session's end")
	}
	s.Heal()
	if s.SessionID() != old {
		t.Error("a session that has not expired is replaced")
	}
	s.Partition()
	s.Expire()
	if exists(t, other, "/live/0000") {
		t.Error("an expired session's record is there")
	}
	s.Heal()
	mustCreate(t, s, "/live/0000", store.Ephemeral)
	_, stat, err := s.Get(t.Context(), "/live/0000")
	if err != nil || stat.EphemeralOwner == old || stat.EphemeralOwner != s.SessionID() {
		t.Errorf("session %#x before, %#x after, owner %#x, %v", old, s.SessionID(), stat.EphemeralOwner, err)
	}
	s.Partition()
	if err := s.Close(); err != nil || !exists(t, other, "/live/0000") {
		t.Errorf("a goodbye came through a partition: %v", err)
	}
	s.Expire()
	if exists(t, other, "/live/0000") {
		t.Error("a closed session cannot expire")
	}
}

func TestRestoreAndWipeLoseSessionsAndReuseZxids(t *testing.T) {
	m, s := newMem(t)
	mustCreate(t, s, "/live/0000", store.Ephemeral)
	mustCreate(t, s, "/tickets/n-", store.PersistentSequential)
	copied, old := m.Snapshot(), s.SessionID()
	mustCreate(t, s, "/tickets/n-", store.PersistentSequential)
	mustCreate(t, s, "/after", store.Persistent)
	_, lost, _ := s.Get(t.Context(), "/after")

	for range 2 { // a copy can be put back more than once
		m.Restore(copied)
		if exists(t, s, "/after") || s.SessionID() == old {
			t.Error("not restored")
		}
		if !exists(t, s, "/live/0000") {
			t.Error("an ephemeral record was restored without its session's time")
		}
		if made := mustCreate(t, s, "/tickets/n-", store.PersistentSequential); made != "/tickets/n-0000000001" {
			t.Errorf("made %s", made)
		}
		mustCreate(t, s, "/live/0001", store.Ephemeral)
		mustCreate(t, s, "/again", store.Persistent)
		_, again, _ := s.Get(t.Context(), "/again")
		if again.Czxid > lost.Czxid+4 || again.Czxid>>32 != 0 {
			t.Errorf("zxid %#x; %#x has been before", again.Czxid, lost.Czxid)
		}
		m.ExpireOrphans()
		if exists(t, s, "/live/0000") || !exists(t, s, "/live/0001") {
			t.Error("orphans and owned records are mixed up")
		}
	}

	m.SetEpoch(5)
	mustCreate(t, s, "/ensemble", store.Persistent)
	_, stat, _ := s.Get(t.Context(), "/ensemble")
	if stat.Czxid != 5<<32+1 || stat.Ctime != memNow {
		t.Errorf("%+v in epoch 5", stat)
	}
	old = s.SessionID()
	m.Wipe()
	if exists(t, s, "/") || s.SessionID() == old {
		t.Error("not wiped")
	}
	if err := s.EnsureRoot(t.Context(), parents...); err != nil {
		t.Fatal(err)
	}
	_, stat, _ = s.Get(t.Context(), "/")
	if stat.Czxid>>32 != 1 {
		t.Errorf("a wiped ensemble begins with zxid %#x", stat.Czxid)
	}
	m, s = newMem(t)
	m.Wipe()
	if err := s.EnsureRoot(t.Context(), parents...); err != nil {
		t.Fatal(err)
	}
	_, stat, _ = s.Get(t.Context(), "/")
	if stat.Czxid>>32 != 0 {
		t.Errorf("a wiped single server begins with zxid %#x", stat.Czxid)
	}
}

func TestLaggingClientCatchesUpAtSyncWriteOrNewSession(t *testing.T) {
	m, s := newMem(t)
	other := m.Session()
	for _, catchUp := range []struct {
		name string
		do   func() error
	}{
		{"sync", func() error { return s.Sync(t.Context(), "/") }},
		{"write", func() error { _, err := s.Set(t.Context(), "/live", nil, store.AnyVersion); return err }},
		{"failed write", func() error { _ = s.Delete(t.Context(), "/none", 0); return nil }},
		{"new session", func() error { s.Expire(); s.SessionID(); return nil }},
	} {
		s.Lag()
		mustCreate(t, other, "/workers/"+catchUp.name, store.Persistent)
		if exists(t, s, "/workers/"+catchUp.name) {
			t.Errorf("%s: does not lag", catchUp.name)
		}
		if err := catchUp.do(); err != nil || !exists(t, s, "/workers/"+catchUp.name) {
			t.Errorf("%s: lags on: %v", catchUp.name, err)
		}
	}
}

func TestSequentialCreatesFailAfterTheLastInt32(t *testing.T) {
	m, s := newMem(t)
	if err := m.SetCreateCount("/tickets", math.MaxInt32-1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/tickets/n-2147483646", "/tickets/n-2147483647"} {
		if made := mustCreate(t, s, "/tickets/n-", store.PersistentSequential); made != want {
			t.Errorf("made %s, want %s", made, want)
		}
	}
	for range 2 { // observed with ZooKeeper 3.8.0 and a snapshot edited to this count
		if made, err := s.Create(t.Context(), "/tickets/n-", nil, store.PersistentSequential); !errors.Is(err, store.ErrExists) {
			t.Errorf("made %s, %v", made, err)
		}
	}
	if err := m.SetCreateCount("/tickets", -1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/tickets/n--000000001", "/tickets/n-0000000000"} {
		if made := mustCreate(t, s, "/tickets/n-", store.PersistentSequential); made != want {
			t.Errorf("made %s, want %s", made, want)
		}
	}
	if err := m.SetCreateCount("/none", 0); !errors.Is(err, store.ErrNoNode) {
		t.Error(err)
	}
}
