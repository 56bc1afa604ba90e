package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/zkstore"
)

// newStore returns a store whose clock advances by 1 ms a call, from 1,000.
func newStore(t *testing.T) zkstore.Store {
	t.Helper()
	now := int64(1000)
	s := zkstore.NewMem(func() int64 { now++; return now }).Session()
	if err := s.EnsureRoot(t.Context(), "/workers", "/live"); err != nil {
		t.Fatal(err)
	}
	return s
}

func list(t *testing.T, s zkstore.Store) []Entry {
	t.Helper()
	all, err := List(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func newRecorder(t *testing.T, s zkstore.Store) *Recorder {
	return &Recorder{Store: s, Entry: Entry{By: "ada@ops", Command: "flaked x"}, Failed: func(err error) { t.Errorf("failed: %v", err) }}
}

func TestOnlyCommandsThatWriteAreListed(t *testing.T) {
	for _, row := range []struct {
		name string
		run  func(context.Context, zkstore.Store) error
		want bool
	}{
		{"read", func(ctx context.Context, s zkstore.Store) error { _, err := s.Children(ctx, "/workers"); return err }, false},
		{"clock", func(ctx context.Context, s zkstore.Store) error {
			if _, err := s.Create(ctx, "/live/clock", nil, zkstore.Ephemeral); err != nil {
				return err
			}
			return s.Delete(ctx, "/live/clock", zkstore.AnyVersion)
		}, false},
		{"create", func(ctx context.Context, s zkstore.Store) error {
			_, err := s.Create(ctx, "/workers/1", nil, zkstore.Persistent)
			return err
		}, true},
		{"set", func(ctx context.Context, s zkstore.Store) error {
			_, err := s.Set(ctx, "/workers", nil, zkstore.AnyVersion)
			return err
		}, true},
		{"multi", func(ctx context.Context, s zkstore.Store) error {
			return s.Multi(ctx, zkstore.SetOp{Path: "/workers", Version: zkstore.AnyVersion})
		}, true},
		{"delete", func(ctx context.Context, s zkstore.Store) error {
			return s.Delete(ctx, "/workers", zkstore.AnyVersion)
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStore(t)
			r := newRecorder(t, s)
			if err := row.run(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if all := list(t, s); (len(all) == 1) != row.want || row.want && all[0].Outcome != "" {
				t.Errorf("before the end: %+v", all)
			}
			r.End(t.Context(), nil)
			all := list(t, s)
			if !row.want {
				if len(all) != 0 {
					t.Errorf("listed: %+v", all)
				}
				return
			}
			if len(all) != 1 || all[0].By != "ada@ops" || all[0].Command != "flaked x" || all[0].Outcome != Done || all[0].AtMs < 1000 {
				t.Errorf("listed: %+v", all)
			}
		})
	}
}

func TestFailedCommandKeepsItsError(t *testing.T) {
	s := newStore(t)
	r := newRecorder(t, s)
	if _, err := r.Set(t.Context(), "/workers", nil, zkstore.AnyVersion); err != nil {
		t.Fatal(err)
	}
	r.End(t.Context(), errors.New("no: "+strings.Repeat("x", 2*maxText)))
	if got := list(t, s)[0].Outcome; !strings.HasPrefix(got, "no: xx") || len(got) > maxText+3 {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// A store that refuses the list must not stop the operator.
func TestCommandGoesOnWithoutTheList(t *testing.T) {
	s := newStore(t).(*zkstore.MemSession)
	refused := errors.New("refused")
	var failed []error
	r := newRecorder(t, refusing{s, refused})
	r.Failed = func(err error) { failed = append(failed, err) }
	if _, err := r.Set(t.Context(), "/workers", []byte("new"), zkstore.AnyVersion); err != nil {
		t.Fatal(err)
	}
	r.End(t.Context(), nil)
	if len(failed) != 1 || !errors.Is(failed[0], refused) {
		t.Errorf("failed with %v", failed)
	}
}

type refusing struct {
	zkstore.Store
	err error
}

func (r refusing) EnsureRoot(context.Context, ...string) error { return r.err }

func TestListKeepsTheLatest(t *testing.T) {
	s := newStore(t)
	for i := range Kept + 5 {
		if _, err := Add(t.Context(), s, Entry{Command: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	all := list(t, s)
	if len(all) != Kept || all[0].Command != "5" || all[Kept-1].Command != fmt.Sprint(Kept+4) {
		t.Errorf("%d entries, from %+v to %+v", len(all), all[0], all[len(all)-1])
	}
}

func TestDamagedEntryIsShown(t *testing.T) {
	s := newStore(t)
	at, err := Add(t.Context(), s, Entry{Command: "flaked x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Set(t.Context(), at, []byte("{"), zkstore.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if all := list(t, s); len(all) != 1 || !strings.Contains(all[0].Command, "cannot be read") {
		t.Errorf("%+v", all)
	}
}

// A node logs an entry once, also one of a list that began anew.
func TestNodeLogsEachNewEntryOnce(t *testing.T) {
	s := newStore(t)
	var out bytes.Buffer
	f := follower{store: s, log: hclog.New(&hclog.LoggerOptions{Output: &out})}
	look := func(want ...string) {
		t.Helper()
		out.Reset()
		f.look(t.Context())
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("the log lacks %q:\n%s", w, out.String())
			}
		}
		if lines := strings.Count(out.String(), "\n"); lines != len(want) {
			t.Errorf("%d lines, want %d:\n%s", lines, len(want), out.String())
		}
	}
	add := func(command string) {
		t.Helper()
		if _, err := Add(t.Context(), s, Entry{By: "ada@ops", Command: command}); err != nil {
			t.Fatal(err)
		}
	}
	look()
	add("one")
	look(`command=one`)
	look()
	add("two")
	add("three")
	look(`command=two`, `command=three`)
	names, err := s.Children(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := s.Delete(t.Context(), path+"/"+name, zkstore.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), path, zkstore.AnyVersion); err != nil {
		t.Fatal(err)
	}
	look()
	add("four")
	look(`command=four`)
}

func TestFollowIgnoresWhatWasThere(t *testing.T) {
	s := newStore(t)
	if _, err := Add(t.Context(), s, Entry{Command: "old"}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	tick, ended := make(chan time.Time), make(chan struct{})
	go func() {
		Follow(ctx, s, tick, hclog.New(&hclog.LoggerOptions{Output: &out}))
		close(ended)
	}()
	tick <- time.Time{} // the first look has ended
	tick <- time.Time{}
	cancel()
	<-ended
	if out.Len() != 0 {
		t.Errorf("logged %s", out.String())
	}
}
