package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// holds writes the slot of a worker, as its node does. It returns the session of the node's live lock.
func (w *seqWorld) holds(worker int, s coordinator.Slot) *store.MemSession {
	w.t.Helper()
	s.Node, s.Nonce, s.Term, s.LeaseUntil = "n", "x", 1, 1
	path := fmt.Sprintf("/workers/%04d", worker)
	_, _, err := w.store.Get(w.t.Context(), path)
	put(w.t, w.store, path, s, err != nil)
	var cl map[string]any
	data, _, err := w.store.Get(w.t.Context(), "/cluster")
	if err != nil || json.Unmarshal(data, &cl) != nil {
		w.t.Fatalf("%v: %s", err, data)
	}
	cl["highest_slot"] = 3
	put(w.t, w.store, "/cluster", cl, false)
	session := w.mem.Session()
	if _, err := session.Create(w.t.Context(), fmt.Sprintf("/live/%04d", worker), nil, store.Ephemeral); err != nil {
		w.t.Fatal(err)
	}
	return session
}

func follows(changes int64) coordinator.Followed {
	return coordinator.Followed{Changes: changes + 1, Incarnation: 0}
}

// leaping is a clock on which each look takes 10 s.
type leaping struct{ at time.Time }

func (l *leaping) Now() time.Time {
	l.at = l.at.Add(10 * time.Second)
	return l.at
}

func (*leaping) Sleep(context.Context, time.Duration) error { return nil }

// A deletion and a creation of one name must not follow each other unseen: ZooKeeper may lose both.
func TestSeqJumpsWaitForEachOther(t *testing.T) {
	seqClock = &leaping{time.Now()}
	defer func() { seqClock = nil }()
	w := newSeqWorld(t)
	w.call("create", "order").wants(t, exitOK, "created", "")
	w.holds(1, coordinator.Slot{Followed: follows(0)})
	const behind = "flaked: waiting up to 30s until the nodes have followed\nflaked: order: not all nodes have " +
		"followed the last change within 30s. Nothing was changed. Connected, but behind: worker 1."
	was, st := w.show("order")
	w.call("delete", "order", "--confirm", "delete sequence order").wants(t, exitFailure, "", behind)
	if got, now := w.show("order"); got != was || now.Changes != st.Changes {
		t.Errorf("%+v %+v", got, now)
	}
	w.call("set", "order", "--ceiling", "5").wants(t, exitOK, "changed", "") // no jump
	w.call("create", "ticket").wants(t, exitOK, "created", "")               // another name
}
