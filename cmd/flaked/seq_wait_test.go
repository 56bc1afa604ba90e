package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/zkstore"
)

// holds writes the slot of a worker, as its node does. It returns the session of the node's live lock.
func (w *seqWorld) holds(worker int, s coordinator.Slot) *zkstore.MemSession {
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
	for _, name := range []string{"highest_slot", "highest_worker"} {
		if cl[name] != nil {
			cl[name] = 3
		}
	}
	put(w.t, w.store, "/cluster", cl, false)
	session := w.mem.Session()
	if _, err := session.Create(w.t.Context(), fmt.Sprintf("/live/%04d", worker), nil, zkstore.Ephemeral); err != nil {
		w.t.Fatal(err)
	}
	return session
}

func follows(changes int64) coordinator.Followed {
	return coordinator.Followed{Changes: changes + 1, Epoch: 1}
}

func TestSeqWaitNamesWhoHasNotFollowed(t *testing.T) {
	w := newSeqWorld(t)
	w.holds(1, coordinator.Slot{Followed: follows(5)})
	w.call("create", "order", "--wait").wants(t, exitOK, "created sequence order. Its first value is 1. All nodes have followed.\n", "")
	w.holds(2, coordinator.Slot{Labels: coordinator.Labels{Name: "n2", Host: "h2", Address: "h2:7609", Version: "v1"}, Followed: follows(1)})
	away := w.holds(3, coordinator.Slot{Labels: coordinator.Labels{Host: "h3"}, Followed: follows(1)})
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	r := w.call("set", "order", "--ceiling", "5", "--wait", "1ms")
	r.wants(t, exitNotFollowed, "changed sequence order.", "order was changed, but not all nodes have followed within 1ms. Connected, but behind: worker 2 (n2, host h2, h2:7609, version v1). Look at the log there, or restart the node. Not connected, so values by the old settings are possible until ")
	r.wants(t, exitNotFollowed, "5 a second", ": worker 3 (host h3). Connect or stop the node.\n")

	r = w.call("set", "order", "--ceiling", "6", "--wait", "1ms", "-o", "json")
	var doc seqChange
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || r.code != exitNotFollowed || !doc.Changed || doc.Wait.Followed || len(doc.Wait.Behind) != 2 {
		t.Fatalf("%v: %+v", err, r)
	}
	if b := doc.Wait.Behind; b[0].Worker != 2 || !b[0].Connected || b[0].UntilMs != nil || b[1].Worker != 3 || b[1].Connected || *b[1].UntilMs == 0 {
		t.Errorf("%+v", b)
	}
	w.call("set", "order", "--ceiling", "7", "--wait=0s").wants(t, exitUsage, "", "--wait must be more than 0s. Leave it out to return at once")
	if w.json(&doc, "set", "order", "--ceiling", "6"); doc.Wait != nil {
		t.Errorf("%+v", doc.Wait)
	}
}

// A deletion and a creation of one name must not follow each other unseen: ZooKeeper may lose both.
func TestSeqJumpsWaitForEachOther(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "order").wants(t, exitOK, "created", "")
	w.holds(1, coordinator.Slot{Followed: follows(0)})
	const behind = "order: not all nodes have followed the last change within 1ms. Nothing was changed. Connected, but behind: worker 1."
	was, st := w.show("order")
	w.call("delete", "order", "--confirm", "delete sequence order", "--wait", "1ms").wants(t, exitFailure, "", behind)
	w.call("set", "order", "--next", "50", "--confirm", "skip values of order below 50", "--wait", "1ms").wants(t, exitFailure, "", behind)
	if got, now := w.show("order"); got != was || now.Changes != st.Changes {
		t.Errorf("%+v %+v", got, now)
	}
	w.call("set", "order", "--ceiling", "5").wants(t, exitOK, "changed", "") // no jump
	w.call("create", "ticket").wants(t, exitOK, "created", "")               // another name
	w.holds(2, coordinator.Slot{Followed: follows(2)})                       // the ceiling was the last change of order
	w.call("delete", "order", "--confirm", "delete sequence order", "--wait", "1ms").wants(t, exitFailure, "", behind)
}

func TestSeqCreateRefusesOldNodes(t *testing.T) {
	w := newSeqWorld(t)
	w.holds(1, coordinator.Slot{Labels: coordinator.Labels{Name: "n1", Version: "v0.9"}})
	const text = "nodes of a version without named sequences run in this cluster, and could hide a loss of data: worker 1 (n1, version v0.9). Upgrade or stop them. Nothing was changed.\n"
	w.call("create", "order").wants(t, exitFailure, "", text)
	w.call("create", "order", "--dry-run").wants(t, exitFailure, "", text)
	w.call("show", "order").wants(t, exitFailure, "", "not found")
	if cl, err := coordinator.ReadCluster(t.Context(), w.store); err != nil || cl.Needs != "" {
		t.Errorf("%v %+v", err, cl)
	}
}

// losing is a store which loses data at the first read after a transaction.
type losing struct {
	zkstore.Store
	changed bool
	lose    func()
}

func (l *losing) Multi(ctx context.Context, ops ...zkstore.Op) error {
	l.changed = true
	return l.Store.Multi(ctx, ops...)
}

func (l *losing) GetAll(ctx context.Context, paths ...string) ([]zkstore.Record, error) {
	if l.changed {
		l.changed = false
		l.lose()
	}
	return l.Store.GetAll(ctx, paths...)
}

// ZooKeeper loses its data during the wait, or an older copy is put back. Nodes may have followed before that.
func TestSeqWaitNoticesThatTheChangeIsLost(t *testing.T) {
	const lost = "order: ZooKeeper has lost the change, or an older copy of its data was put back. Look at it with `flaked seq show`, and repeat it if needed."
	path := fmt.Sprintf("/seq/s/%03x/order", sequence.Bucket("order"))
	for name, lose := range map[string]func(w *seqWorld, st seqstore.State, r seqstore.Record){
		"the record": func(w *seqWorld, _ seqstore.State, _ seqstore.Record) {
			if err := w.mem.Session().Delete(w.t.Context(), path, zkstore.AnyVersion); err != nil {
				w.t.Fatal(err)
			}
		},
		"all since the creation": func(w *seqWorld, st seqstore.State, r seqstore.Record) {
			put(w.t, w.mem.Session(), "/seq", st, false)
			put(w.t, w.mem.Session(), path, r, false)
		},
		"the record, and others have changed since": func(w *seqWorld, st seqstore.State, r seqstore.Record) {
			st.Changes += 3
			put(w.t, w.mem.Session(), "/seq", st, false)
			put(w.t, w.mem.Session(), path, r, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSeqWorld(t)
			w.call("create", "order").wants(t, exitOK, "created", "")
			r, st := w.show("order")
			w.holds(1, coordinator.Slot{Followed: follows(9)})
			w.store = &losing{Store: w.store, lose: func() { lose(w, st, r) }}
			w.call("set", "order", "--ceiling", "5", "--wait").wants(t, exitFailure, "", lost)
		})
	}
}
