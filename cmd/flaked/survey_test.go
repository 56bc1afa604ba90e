package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/web"
)

// told has the answers of a fake node: to STATUS, with the peers that it has met, and to SEQ.
type told struct {
	node, cluster string
	worker        int
	taken         string
	met           []coordinator.Peer
	connected     bool
	leaseEnds     int64
}

// serve makes a node that answers so, and returns its address.
func (n told) serve(t *testing.T) string {
	t.Helper()
	doc := web.Status{Cluster: node.ClusterSnapshot{UUID: cmp.Or(n.cluster, "u")}, Peers: n.met,
		Node: node.Snapshot{Phase: node.Serving, Node: n.node, Worker: &n.worker, LeaseEndsMs: &n.leaseEnds,
			ZooKeeper: node.ZooKeeperSnapshot{OK: n.connected}}}
	line, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return fakeNode(t, "tcp", "127.0.0.1:0", func(request string) string {
		if request == "STATUS peers" {
			return string(line) + "\n"
		}
		return n.taken + "\n"
	})
}

// knows is a reply to SEQ.
func knows(taken int) string {
	return fmt.Sprintf("name=invoice mode=strict start=1 increment=1 taken=%d", taken)
}

// at returns a peer of this machine.
func at(node string, worker int, term int64, addresses ...string) coordinator.Peer {
	host, _ := os.Hostname()
	return coordinator.Peer{Node: node, Name: node, Worker: worker, Term: term, Host: host,
		Address: strings.Join(addresses, ",")}
}

// lostWorld is a cluster after a loss of data. a holds worker 0, and has met these peers. ZooKeeper knows of worker 1
// what was gives, and has lost the records of workers 2 and 3.
func lostWorld(t *testing.T, was coordinator.Slot, met ...coordinator.Peer) *seqWorld {
	t.Helper()
	w := newSeqWorld(t)
	w.call("create", "invoice", "--mode", "strict").wants(t, exitOK, "created", "")
	w.ago = time.Minute // when all nodes were cut off
	w.holds(was)
	cl, err := coordinator.PeekCluster(t.Context(), w.store)
	if err != nil {
		t.Fatal(err)
	}
	cl.HighestSlot = 3
	put(t, w.store, "/cluster", cl, false)
	put(t, w.store, coordinator.SlotPath(0), slotOf(at("a", 0, 1, told{node: "a", taken: knows(2), met: met}.serve(t))),
		true)
	for worker := 2; worker <= 3; worker++ {
		put(t, w.store, coordinator.SlotPath(worker), lostSlot(), true)
	}
	w.ago = 0
	w.losesData()
	return w
}

func lostSlot() coordinator.Slot {
	return coordinator.Slot{StandsIn: true, LeaseUntil: time.Now().Add(time.Hour).UnixMilli()}
}

// slotOf returns the record of a peer that runs.
func slotOf(p coordinator.Peer) coordinator.Slot {
	return coordinator.Slot{Node: p.Node, Nonce: "x", Term: p.Term, Confirmed: true,
		LeaseUntil: time.Now().Add(time.Hour).UnixMilli(),
		Labels:     coordinator.Labels{Name: p.Name, Address: p.Address, Host: p.Host}}
}

// Whom ZooKeeper has forgotten is asked where others have met it, and counts only if it answers itself. The words name
// everybody who may have issued more.
func TestRecoverHearsWhomOthersHaveMet(t *testing.T) {
	b := told{node: "b", worker: 2, taken: knows(53)}
	lost := "the holders of the missing workers 2-3"
	stopped := slotOf(at("x", 1, 4, nobody))
	stopped.Stopped = true
	released := slotOf(at("x", 1, 4, nobody))
	released.Released, released.ReleasedBy = true, "somebody"
	over := slotOf(at("x", 1, 4, nobody))
	over.LeaseUntil = 1
	for name, row := range map[string]struct {
		was     coordinator.Slot
		met     []coordinator.Peer
		known   int
		unasked string
	}{
		"nobody has met anybody": {was: lostSlot(), known: 2, unasked: "the holders of the missing workers 1-3"},
		"a node that runs": {was: stopped, met: []coordinator.Peer{at("b", 2, 1, b.serve(t))}, known: 53,
			unasked: "the holders of the missing worker 3"},
		"at its second address": {was: stopped, met: []coordinator.Peer{at("b", 2, 1, nobody, b.serve(t))}, known: 53,
			unasked: "the holders of the missing worker 3"},
		"one that another has met": {was: stopped, met: []coordinator.Peer{at("c", 3, 1, told{node: "c", worker: 3,
			taken: knows(9), met: []coordinator.Peer{at("b", 2, 1, b.serve(t)), at("a", 0, 1, nobody)}}.serve(t))},
			known: 53},
		"one that is gone": {was: stopped, met: []coordinator.Peer{at("b", 2, 1, nobody)}, known: 2,
			unasked: "b 127.0.0.1:1, " + lost},
		"another node has its address": {was: stopped,
			met:   []coordinator.Peer{at("b", 2, 1, told{node: "c", worker: 7, taken: knows(9)}.serve(t))},
			known: 9, unasked: "b ADDR, " + lost},
		"a node of another cluster has its address": {was: stopped,
			met: []coordinator.Peer{at("b", 2, 1, told{node: "b", cluster: "v", worker: 2, taken: knows(99),
				met: []coordinator.Peer{at("foreign", 9, 1, nobody)}}.serve(t))}, known: 2, unasked: "b ADDR, " + lost},
		"another sequence has the name": {was: stopped,
			met: []coordinator.Peer{at("b", 2, 1, told{node: "b", worker: 2,
				taken: "name=invoice mode=strict start=7 increment=1 taken=99"}.serve(t))}, known: 2,
			unasked: "b ADDR, " + lost},
		"it began again after the copy": {was: stopped, met: []coordinator.Peer{at("x", 1, 5, nobody)}, known: 2,
			unasked: "x 127.0.0.1:1, " + lost},
		"it stopped after others met it":     {was: stopped, met: []coordinator.Peer{at("x", 1, 4, nobody)}, known: 2, unasked: lost},
		"an operator has released it":        {was: released, known: 2, unasked: "x 127.0.0.1:1, " + lost},
		"its lease was over, in an old copy": {was: over, known: 2, unasked: "x 127.0.0.1:1, " + lost},
		"it has no address": {was: stopped, met: []coordinator.Peer{at("b", 2, 1, "rubbish")}, known: 2,
			unasked: "b rubbish, " + lost},
	} {
		t.Run(name, func(t *testing.T) {
			w := lostWorld(t, row.was, row.met...)
			if strings.Contains(row.unasked, "ADDR") {
				row.unasked = strings.ReplaceAll(row.unasked, "ADDR", row.met[0].Address)
			}
			words := fmt.Sprintf("invoice is unused from %d on in incarnation 1", row.known+11)
			if row.unasked != "" {
				words += ", also by " + row.unasked
				w.call("recover", "invoice", "--confirm", strings.Split(words, ",")[0]).wants(t, exitUsage, "KNOWN BY",
					"does not match")
			}
			w.call("recover", "invoice").wants(t, exitUsage, fmt.Sprintf("The highest known value is %d.", row.known),
				"--confirm '"+words+"'")
			w.call("recover", "invoice", "--confirm", words).wants(t, exitOK, "changed sequence", "")
		})
	}
}

// Names that others chose neither move the cursor nor leave the quotes of a shell, and what is asked is bounded.
func TestRecoverOfHostileNames(t *testing.T) {
	evil := at("e", 2, 1, "[\x1b[2J]:1")
	evil.Name = "e'; rm -rf ~; '" + strings.Repeat("x", 1000)
	w := lostWorld(t, lostSlot(), evil)
	got := w.call("recover", "invoice")
	if text := got.stdout + got.stderr; strings.ContainsRune(text, 0x1b) || len(text) > 2000 ||
		!strings.Contains(got.stderr, `also by e'\''; rm -rf ~; '\''xxx`) {
		t.Errorf("%q", text)
	}
	var many []coordinator.Peer
	for k := range 3 * 4096 {
		many = append(many, at(fmt.Sprint("n", k), k+4, 1, ""))
	}
	began := time.Now()
	got = lostWorld(t, lostSlot(), many...).call("recover", "invoice")
	if !strings.Contains(got.stderr, fmt.Sprintf("%d more", 3*4096-8)) || time.Since(began) > 20*time.Second ||
		len(got.stderr) > 2000 {
		t.Errorf("after %s: %.2000q", time.Since(began), got.stderr)
	}
}

// A thaw is refused while somebody runs whose worker it would free. The words name those that nobody could ask.
func TestThawHearsWhomOthersHaveMet(t *testing.T) {
	const words, missing = "no lost holder of cluster default is left", "the holders of the missing workers 2-3"
	later := time.Now().Add(time.Hour).UnixMilli() + 1000
	free, old := coordinator.Slot{Released: true}, slotOf(at("b", 1, 1, nobody))
	b := told{node: "b", worker: 1, leaseEnds: later}
	connected := b
	connected.connected = true
	same := b
	same.leaseEnds = old.LeaseUntil
	for name, row := range map[string]struct {
		was  coordinator.Slot
		met  string // b's address, "" if nobody has met it
		runs bool
		not  string
	}{
		"it runs, and has no record":              {free, b.serve(t), true, ""},
		"it runs, and its record is an older one": {old, b.serve(t), true, ""},
		"its record is the last one":              {old, same.serve(t), false, missing},
		"it is connected, and writes the record":  {old, connected.serve(t), false, missing},
		"nobody can ask it":                       {free, nobody, false, "b 127.0.0.1:1, " + missing},
		"nobody can ask it, which has a record":   {old, "", false, "b 127.0.0.1:1, " + missing},
		"nobody has met it":                       {free, "", false, missing},
		"nobody has met it, and its record is lost": {lostSlot(), "", false,
			strings.Replace(missing, "2-3", "1-3", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			var met []coordinator.Peer
			if row.met != "" {
				met = append(met, at("b", 1, 1, row.met))
			}
			w := lostWorld(t, row.was, met...)
			cl, err := coordinator.PeekCluster(t.Context(), w.store)
			if err != nil {
				t.Fatal(err)
			}
			cl.FrozenUntil = time.Now().Add(time.Hour).UnixMilli()
			put(t, w.store, "/cluster", cl, false)
			all := words + ": not " + row.not
			if row.runs {
				call(t, "", "cluster", "thaw", "--confirm", words+": not "+missing).wants(t, exitFailure, "",
					"b "+row.met+" (worker 1)")
				return
			}
			call(t, "", "cluster", "thaw", "--confirm", words).wants(t, exitUsage, "", "--confirm '"+all+"'")
			call(t, "", "cluster", "thaw", "--confirm", all).wants(t, exitOK, "ended the freeze", "")
		})
	}
}
