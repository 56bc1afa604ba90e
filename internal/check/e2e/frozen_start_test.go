package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/check/order"
	"github.com/flaked/flaked/internal/check/upgrade"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/localcache"
)

// This version starts from what nodes of 0.1.0 have left behind, and goes on.
func TestFrozenRecords(t *testing.T) {
	if *upgrade.Anew {
		keep(t)
		return // a start would wait for the lease of the stopped node: a minute
	}
	t.Run("as they are", func(t *testing.T) {
		t.Parallel()
		h := inherit(t, nil)
		h.Command("status").Reads(t, "no node serves, 7 sequences")
		h.Command("doctor", "--state-dir", h.node.Dir, "--listen", "127.0.0.1:0", "--heartbeat", "500ms").
			Reads(t, fmt.Sprintf("holds worker %d of default", h.Worker))
		h.goesOn()
		upgrade.Names(t, "stats", statNames(h.node))
	})
	t.Run("with fields that a later version has added", func(t *testing.T) {
		t.Parallel()
		inherit(t, map[string]json.RawMessage{"added_later": []byte(`{"x":[1]}`)}).goesOn()
	})
	t.Run("ZooKeeper has lost a sequence that the state directory knows", func(t *testing.T) {
		t.Parallel()
		h := inherit(t, nil)
		h.records.Must(h.records.ZK.Delete(t.Context(), "/seq/s/097/order", store.AnyVersion))
		h.node.Start().Until("it freezes registration", func() bool {
			return strings.Contains(h.node.Proc.Log(), "the record of sequence order is missing")
		})
		h.Command("cluster", "thaw", "--confirm", "no lost holder of cluster default is left").Wants(t, 0, "")
		h.node.Ready()
		h.Named(t, "order").From(h.node, 400) // beyond what it held
		h.node.Until("the strict sequence waits for an operator", func() bool {
			_, err := h.node.Ask("NEXT invoice")
			return err != nil && strings.Contains(err.Error(), "reason=frozen")
		})
	})
}

// heir is a site with the kept records, and a node with the kept state directory.
type heir struct {
	*harness.Site
	past
	records *harness.Records
	node    *harness.Node
}

// inherit returns an heir. It adds some fields to each object of JSON that was kept, as a later version may.
func inherit(t *testing.T, added map[string]json.RawMessage) *heir {
	t.Helper()
	s := harness.NewSite(t, zktest.Chroot(t, zktest.Shared(t)), "--heartbeat", "500ms", "--confirm-time", "2s")
	s.Flags = harness.Without(s.Flags, "--bootstrap")
	h := &heir{Site: s, records: s.Records(), node: s.Node()}
	text, err := os.ReadFile(upgrade.Path(t, "0.1.0/zookeeper.json"))
	if err = errors.Join(err, json.Unmarshal(text, &h.past)); err != nil {
		t.Fatal(err)
	}
	for i, k := range h.past.Records {
		if strings.HasPrefix(k.Data, "{") {
			h.past.Records[i].Data = string(with([]byte(k.Data), added))
		}
	}
	put(h.records, h.past.Records)
	h.remembers()
	inherits(h.node, added)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("docs/operate.md says what may change: this version must go on from what 0.1.0 has written")
		}
	})
	return h
}

// with returns an object of JSON with more fields.
func with(object []byte, more map[string]json.RawMessage) []byte {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(object, &fields); err != nil {
		panic(err)
	}
	maps.Copy(fields, more)
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return text
}

// inherits gives the node the kept state directory. A state file that was copied is never resumed. So it goes into a
// file of this machine, with the fingerprint of that.
func inherits(n *harness.Node, added map[string]json.RawMessage) {
	t := n.Site.T
	t.Helper()
	own, err := localcache.Open(n.Dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = own.Save(localcache.Record{})
	blank, readErr := os.ReadFile(n.StateFile())
	kept, keptErr := os.ReadFile(upgrade.Path(t, "0.1.0/state/flaked.state"))
	if err := errors.Join(err, readErr, keptErr, own.Close()); err != nil {
		t.Fatal(err)
	}
	for half := range slices.Chunk(kept, len(kept)/2) {
		var mine, body map[string]json.RawMessage
		err = errors.Join(json.Unmarshal(bodyOf(blank), &mine), json.Unmarshal(bodyOf(half), &body))
		if err != nil {
			t.Fatal(err)
		}
		body["payload"] = with(body["payload"], added)
		text := with(with(bodyOf(half), added), map[string]json.RawMessage{"fingerprint": mine["fingerprint"],
			"payload": body["payload"]})
		seal(half, text)
	}
	f, err := os.OpenFile(n.StateFile(), os.O_WRONLY, 0) // the same inode
	if err == nil {
		_, err = f.Write(kept)
		err = errors.Join(err, f.Close())
	}
	for _, name := range []string{"sequences.cache", "sequences.journal"} {
		data, readErr := os.ReadFile(upgrade.Path(t, "0.1.0/state/"+name))
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(n.Dir, name), data, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// bodyOf returns the record of one half of a state file. seal replaces it.
func bodyOf(half []byte) []byte { return half[20 : 20+binary.LittleEndian.Uint32(half[16:])] }

func seal(half, body []byte) {
	clear(half[20:])
	binary.LittleEndian.PutUint32(half[16:], uint32(copy(half[20:], body)))
	end := len(half) - 4
	binary.LittleEndian.PutUint32(half[end:], crc32.Checksum(half[:end], crc32.MakeTable(crc32.Castagnoli)))
}

// remembers adds the values that were issued in the past to the ledger, as those of a node of their own. The past was
// before the history began.
func (h *heir) remembers() {
	for _, q := range pastSequences {
		h.Site.Values.Made(q.name, harness.ModeOf(q.flags))
		for i, word := range strings.Fields(h.Issued[q.asked]) {
			v, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				h.T.Fatal(err)
			}
			at := int64(i-1000) * 2
			r := order.Request{Name: q.asked, Node: pastNode, First: v, Last: v, Sent: at, Answered: at + 1}
			if q.asked == "invoice" && v == h.Keyed {
				r.Key = pastKey
			}
			h.Site.Values.Add(r)
		}
	}
}

// pastNode is the number of the nodes of the past in the history.
const pastNode = 8

// goesOn starts the node. It fails the test unless the node is the one of the past, and issues what comes after that.
func (h *heir) goesOn() {
	h.T.Helper()
	n := h.node.Start().Ready()
	if got, want := n.Identity(), (harness.Identity{Worker: h.Worker, Term: h.Term + 1, UUID: h.past.Node, State: "serving"}); got != want {
		h.T.Errorf("the node is %+v, want %+v", got, want)
	}
	if id := n.Get(1)[0]; id.String() <= h.LastID {
		h.T.Errorf("the ID %s is not above %s of the past", id, h.LastID)
	}
	// The journal has what the node held, so its first value is below the first one that no node had taken.
	if v := h.Named(h.T, "order").First(n); v >= h.Next {
		h.T.Errorf("the first value is %d, and no node had taken %d", v, h.Next)
	}
	keyed(n, pastKey) // the ledger knows its value
	for _, q := range pastSequences[:len(pastSequences)-1] {
		h.Named(h.T, q.asked).From(n, 40)
	}
	h.Command("status").Reads(h.T, "1 node serves, 7 sequences")
	h.operates()
}

// operates asks for what needs the records of a template and of a deleted sequence.
func (h *heir) operates() {
	h.T.Helper()
	h.node.Until("the template creates its second and last sequence", func() bool {
		_, err := h.node.Ask("NEXT daily:tuesday")
		return err == nil
	})
	for _, name := range []string{"daily:wednesday", "gone"} {
		if line, err := h.node.Ask("NEXT " + name); err == nil || !strings.Contains(err.Error(), "reason=no-sequence") {
			h.T.Errorf("%s: %s %v", name, line, err)
		}
	}
	gone := h.Sequence("gone")
	if before := gone.Highest(); gone.First(h.node) <= before {
		h.T.Errorf("a sequence that was created again does not go on above %d", before)
	}
}

// statNames returns the names in the reply to STATS of a node that serves, except those that come with a problem or
// with the first request of a kind.
func statNames(n *harness.Node) (names []string) {
	c := &harness.Client{Node: n, Timeout: harness.CallTimeout}
	defer c.Close()
	line, err := c.Ask("STATS")
	for ; err == nil && line != "END"; line, err = c.Line() {
		name, _, _ := strings.Cut(line, " ")
		if !slices.Contains([]string{"degraded", "reason", "cause"}, name) && !strings.HasPrefix(name, "requests_") {
			names = append(names, name)
		}
	}
	if err != nil {
		n.Site.T.Error(err)
	}
	return names
}
