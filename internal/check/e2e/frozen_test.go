package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flaked/flaked/internal/check/upgrade"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// past is the content of testdata/0.1.0: the IDs and values that a node of 0.1.0 had issued before it was killed, and
// the records in ZooKeeper at that time.
type past struct {
	Worker int    `json:"worker"`
	Term   int    `json:"term"`
	Node   string `json:"node"`
	LastID string `json:"last_id"`
	// Issued are the values of each sequence that clients received.
	Issued map[string]string `json:"issued"`
	// Next is the first value of the segment sequence that no node had taken.
	Next int64 `json:"next"`
	// Keyed is the value that a key of the strict sequence got.
	Keyed   int64        `json:"keyed"`
	Records []keptRecord `json:"records"`
}

// keptRecord is a record in ZooKeeper. Nodes compare versions.
type keptRecord struct {
	Path    string `json:"path"`
	Version int32  `json:"version"`
	Data    string `json:"data,omitempty"`
	Binary  []byte `json:"binary,omitempty"` // if the data are no text
}

func (k keptRecord) data() []byte {
	if k.Binary != nil {
		return k.Binary
	}
	return []byte(k.Data)
}

// pastSequences are the sequences that the past node has issued values of, with the flags that made them.
var pastSequences = []struct {
	name, asked string
	flags       []string
}{
	{"order", "order", nil},
	{"invoice", "invoice", []string{"--mode", "strict"}},
	{harness.Plain, harness.Plain, []string{"--mode", "ordered"}},
	{harness.Family, "msg:alice", []string{"--mode", "ordered", "--sections", "2"}},
	{"daily:*", "daily:monday", []string{"--max-names", "2"}},
	{"ticket", "ticket", []string{"--salt", "8"}},
	{"voucher", "voucher", []string{"--scatter", "34", "--start", "1000000000", "--max", "9999999999"}},
	{"gone", "gone", nil},
}

const pastKey = "order-4711"

// keep lets two nodes of the release issue IDs and values, ends them, and writes what they have left behind.
func keep(t *testing.T) {
	s := harness.NewSite(t, zktest.Chroot(t, zktest.Shared(t)), "--heartbeat", "500ms", "--confirm-time", "2s")
	n, other := s.Node(), s.Node()
	for _, n := range []*harness.Node{n, other} {
		n.Build = release(t)
		n.Start().Ready()
	}
	p := past{Issued: map[string]string{}}
	for _, q := range pastSequences {
		v := s.Sequence(q.name, q.flags...)
		v.Name = q.asked
		v.From(n, 20)
		v.From(other, 20)
		if q.name == "invoice" {
			p.Keyed = keyed(n, pastKey)
		}
		issued := map[int64]bool{}
		for _, r := range s.Values.All(q.asked) {
			issued[r.First] = true // each is for one value
		}
		p.Issued[q.asked] = strings.Trim(fmt.Sprint(slices.Sorted(maps.Keys(issued))), "[]")
	}
	s.Command("seq", "delete", "gone", "--confirm", "delete sequence gone").Wants(t, 0, "gone")
	upgrade.Names(t, "stats", statNames(n))
	id := n.Identity()
	p.Worker, p.Term, p.Node, p.LastID = id.Worker, id.Term, id.UUID, n.Get(1)[0].String()
	other.Stop()
	n.Kill()
	p.Next = s.Named(t, "order").Next()
	p.Records = all(s.Records(), "/")
	text, err := json.MarshalIndent(p, "", " ")
	if err == nil {
		err = os.WriteFile(upgrade.Path(t, "0.1.0/zookeeper.json"), append(text, '\n'), 0o600)
	}
	state := upgrade.Path(t, "0.1.0/state")
	if err := errors.Join(err, os.RemoveAll(state), os.CopyFS(state, os.DirFS(n.Dir))); err != nil {
		t.Fatal(err)
	}
}

// keyed returns the value of a key.
func keyed(n *harness.Node, key string) (value int64) {
	n.Site.T.Helper()
	c := &harness.Client{Node: n, Timeout: harness.CallTimeout}
	defer c.Close()
	n.Until("a value for a key", func() bool {
		got, err := n.Site.Request(c, harness.WithKey("invoice", key))
		if err == nil {
			value = got[0]
		}
		return err == nil
	})
	return value
}

// all returns the persistent records at and below a path.
func all(r *harness.Records, at string) (found []keptRecord) {
	r.T.Helper()
	children, err := r.ZK.Children(r.T.Context(), at)
	r.Must(err)
	for _, child := range children {
		child = path.Join(at, child)
		data, stat, err := r.ZK.Get(r.T.Context(), child)
		r.Must(err)
		k := keptRecord{Path: child, Version: stat.Version, Data: string(data)}
		if !utf8.Valid(data) {
			k.Data, k.Binary = "", data
		}
		if stat.EphemeralOwner == 0 {
			found = append(append(found, k), all(r, child)...)
		}
	}
	return found
}

// put writes kept records into an empty ZooKeeper.
func put(r *harness.Records, all []keptRecord) {
	r.T.Helper()
	r.Must(r.ZK.EnsureRoot(r.T.Context()))
	for _, k := range all {
		_, err := r.ZK.Create(r.T.Context(), k.Path, k.data(), store.Persistent)
		r.Must(err)
		for range k.Version {
			_, err := r.ZK.Set(r.T.Context(), k.Path, k.data(), store.AnyVersion)
			r.Must(err)
		}
	}
}
