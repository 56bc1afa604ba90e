package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/store"
)

// seqWorld is a cluster in memory, in which a node has served sequences.
type seqWorld struct {
	t     *testing.T
	mem   *store.Mem
	store store.Store
}

const seqLease = 2 * time.Hour

func newSeqWorld(t *testing.T) *seqWorld {
	t.Helper()
	mem := store.NewMem(nil)
	w := &seqWorld{t: t, mem: mem, store: mem.Session()}
	lease := seqLease
	want, err := node.Settings{Lease: &lease}.Record("u", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := coordinator.CreateCluster(t.Context(), w.store, want, time.Now().UnixMilli()); err != nil {
		t.Fatal(err)
	}
	put(t, w.store, "/seq", seq.State{Cluster: "u"}, true)
	return w
}

// losesData raises the incarnation, as the node does that notices a loss of data.
func (w *seqWorld) losesData() {
	w.t.Helper()
	cl, err := coordinator.PeekCluster(w.t.Context(), w.store)
	if err != nil {
		w.t.Fatal(err)
	}
	cl.Incarnation++
	put(w.t, w.store, "/cluster", cl, false)
}

func (w *seqWorld) operator() seq.Operator {
	return seq.Operator{Store: w.store, By: "test"}
}

func (w *seqWorld) show(name string) (seq.Record, seq.State) {
	w.t.Helper()
	r, st, err := w.operator().Show(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return r, st
}

// taken makes nodes take all values below next.
func (w *seqWorld) taken(name string, next int64) {
	w.t.Helper()
	if _, err := w.operator().Set(w.t.Context(), name, seq.Change{Next: &next}); err != nil {
		w.t.Fatal(err)
	}
}

// call runs `flaked seq` with these arguments in this cluster.
func (w *seqWorld) call(args ...string) result {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	app := newApp(strings.NewReader(""), &stdout, &stderr)
	for i, cmd := range app.Commands {
		if cmd.Name == "seq" {
			app.Commands[i] = seqCommand(func(c *cli.Context,
				f func(context.Context, store.Store) error) error {
				return f(c.Context, w.store)
			})
			finish(app.Commands[i], app.Name)
		}
	}
	err := app.RunContext(w.t.Context(), arrange(app.Commands, append([]string{"flaked", "seq"}, args...)))
	code, text := explain(w.t.Context(), err)
	if text != "" {
		stderr.WriteString("flaked: " + text + "\n")
	}
	return result{code, stdout.String(), stderr.String()}
}

// json runs a command with -o json and reads its output into v.
func (w *seqWorld) json(v any, args ...string) {
	w.t.Helper()
	r := w.call(append(args, "-o", "json")...)
	if r.code != exitOK {
		w.t.Fatalf("%v: %+v", args, r)
	}
	if err := json.Unmarshal([]byte(r.stdout), v); err != nil {
		w.t.Fatalf("%v: %v: %s", args, err, r.stdout)
	}
}

func TestSeqCreateDefaults(t *testing.T) {
	w := newSeqWorld(t)
	r := w.call("create", "order")
	if want := "created sequence order. Its first value is 1.\nAsk a node for a value with `flaked seq next order`, " +
		"or NEXT order\n"; r.code != exitOK || r.stdout != want || r.stderr != "" {
		t.Errorf("%+v", r)
	}
	got, _ := w.show("order")
	want := seq.Settings{Block: 32, SupplyMs: 900_000, HoldMs: seqLease.Milliseconds(), Ceiling: 1_000_000,
		HardCeiling: 1_000_000}
	if got.Settings != want || got.Start != 1 || got.Increment != 1 || got.Max != 1<<53-1 || got.Next != 0 {
		t.Errorf("%+v", got)
	}
	w.call("create", "order").wants(t, exitFailure, "", "flaked: order: sequence exists already. `flaked seq show`")

	for _, row := range []struct {
		name, flags       string
		ceiling, hard     int64
		start, inc, limit int64
	}{
		{"small", "--max int32", 1000, 1000, 1, 1, 1<<31 - 1},
		{"smaller", "--max 70000 --start 5 --increment 3", 1000, 1000, 5, 3, 70_000},
		{"large", "--max int64", 1_000_000, 1_000_000, 1, 1, 1<<63 - 1},
		{"low", "--ceiling 50", 50, 50, 1, 1, 1<<53 - 1},
		{"both", "--ceiling 50 --hard-ceiling 70", 50, 70, 1, 1, 1<<53 - 1},
		{"hard", "--hard-ceiling 70", 70, 70, 1, 1, 1<<53 - 1},
	} {
		w.call(append([]string{"create", row.name}, strings.Fields(row.flags)...)...).wants(t, exitOK,
			"created sequence "+row.name, "")
		if got, _ := w.show(row.name); got.Ceiling != row.ceiling || got.HardCeiling != row.hard ||
			got.Start != row.start || got.Increment != row.inc || got.Max != row.limit {
			t.Errorf("%s: %+v", row.name, got)
		}
	}

	w.call("create", "own", "--block", "64", "--supply", "1h", "--hold", "30m").wants(t, exitOK, "created", "")
	if got, _ := w.show("own"); got.Block != 64 || got.SupplyMs != 3_600_000 || got.HoldMs != 1_800_000 {
		t.Errorf("%+v", got)
	}
}

// A name that was deleted goes on above its old values, and the command says so.
func TestSeqDeletedNameGoesOn(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "order", "--max", "1000").wants(t, exitOK, "created", "")
	w.taken("order", 501)
	w.call("delete", "order").wants(t, exitUsage, "", "connected nodes will refuse requests for order, whose next")
	w.call("delete", "order", "--confirm", "delete sequence ticket").wants(t, exitUsage, "", "does not match")
	if got, _ := w.show("order"); got.DeletedAt != 0 {
		t.Fatal("deleted without a confirmation")
	}
	w.call("delete", "order", "--confirm", "delete sequence order").wants(t, exitOK,
		"deleted sequence order. Its name is kept, and goes on above the old values if it is created again. `flaked "+
			"seq purge order` can forget it after 2h0m30s.", "")
	w.call("delete", "order").wants(t, exitOK, "sequence order was deleted before, at ", "")
	w.call("list").wants(t, exitOK, "deleted\n", "")
	w.call("set", "order", "--ceiling", "5").wants(t, exitFailure, "", "order: the sequence was deleted. `flaked seq")
	w.call("create", "order", "--max", "500").wants(t, exitFailure, "", "order: --max must be above 500, the highest")
	w.call("create", "order", "--increment", "10").wants(t, exitOK, "created sequence order. The name was deleted", "")
	w.call("delete", "ticket").wants(t, exitFailure, "", "ticket: sequence not found. `flaked seq list` prints the")
}

func TestSeqSet(t *testing.T) {
	w := newSeqWorld(t)
	w.call("set", "order", "--ceiling", "5").wants(t, exitFailure, "", "order: sequence not found. `flaked seq list`")
	w.call("create", "order", "--max", "1000", "--ceiling", "100").wants(t, exitOK, "created", "")
	w.call("set", "order", "--ceiling", "50", "--hold", "1h").wants(t, exitOK,
		"changed sequence order. Connected nodes follow at their next heartbeat.\n         BEFORE        AFTER\n"+
			"hold     2h0m0s        1h0m0s\nceiling  100 a second  50 a second\n", "")
	got, st := w.show("order")
	if got.Ceiling != 50 || got.HoldMs != 3_600_000 || got.HardCeiling != 100 || got.Block != 32 ||
		got.Max != 1000 || got.SupplyMs != 900_000 || st.Changes != 2 {
		t.Errorf("%+v %+v", got, st)
	}
	w.call("set", "order", "--ceiling", "50").wants(t, exitOK, "sequence order has these settings already.", "")
	if again, now := w.show("order"); again != got || now.Changes != st.Changes {
		t.Errorf("it wrote: %+v", again)
	}
	w.call("set", "order", "--ceiling", "101").wants(t, exitFailure, "", "order: --ceiling must be at most the hard")
	w.call("set", "order", "--block", "1").wants(t, exitFailure, "", "--block must be 32 to")
	w.call("set", "order", "--max", "999").wants(t, exitFailure, "", "order: --max is 1000 and cannot become lower,")
	w.call("set", "order", "--max", "js").wants(t, exitOK, "max            1000       9007199254740991 (js)\n", "")
}

func TestSeqSetNextMustBeConfirmed(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "order", "--max", "1000", "--start", "10", "--increment", "10").wants(t, exitOK, "created", "")
	w.taken("order", 100)
	for _, row := range []struct{ flags, want string }{
		{"--next 99", ""}, // the position of 100
		{"--next 90", "order: --next cannot be 90, because values up to 90 may have been issued. Give a higher one"},
		{"--next 1001", "order: --next cannot be 1001, because there is no value from there up to the max, 1000."},
		{"--next 200 --vouch-after-loss", "--vouch-after-loss: the sequence is not affected by a loss of data, so"},
		{"--next 1001 --max 1005", "no value from there up to the max, 1005"},
	} {
		r := w.call(append([]string{"set", "order"}, strings.Fields(row.flags)...)...)
		if row.want == "" {
			r.wants(t, exitOK, "Nothing was changed", "")
			continue
		}
		r.wants(t, exitFailure, "", row.want)
	}
	const words = "skip values of order below 195"
	w.call("set", "order", "--next", "195").wants(t, exitUsage, "", "10 values of order, from 100 on, will never be "+
		"issued. Nothing was changed. To go on, add --confirm '"+words+"'")
	if got, _ := w.show("order"); got.Next != 9 {
		t.Fatalf("not confirmed: %+v", got)
	}
	w.call("set", "order", "--next", "195", "--confirm", words).wants(t, exitOK, "next value     100       200\n", "")
	if got, _ := w.show("order"); got.Next != 19 || got.From != 19 {
		t.Errorf("%+v", got)
	}
}

// After a loss of data, an operator who knows the next value ends the skip or the freeze.
func TestSeqVouchAfterLoss(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "order", "--max", "100000", "--ceiling", "1000").wants(t, exitOK, "created", "")
	w.taken("order", 1001)
	w.losesData()
	w.losesData()
	w.call("list").wants(t, exitOK, "frozen\n", "")
	w.call("show", "order").wants(t, exitOK, "`flaked seq set 'order' --next VALUE --vouch-after-loss` says where", "")

	w.call("set", "order", "--next", "2001", "--confirm", "skip values of order below 2001").wants(t, exitOK,
		" The sequence does not go on at the next value, because ZooKeeper has lost data and nobody vouched with "+
			"--vouch-after-loss. See `flaked seq show order`.\n", "")
	const words = "order is unused from 3001 on in incarnation 2"
	risk := "ZooKeeper has lost data. If any value of order from 3001 on was issued before, it will be issued twice. " +
		"1,000 values of order, from 2001 on, will never be issued. Nothing was changed. To go on, add --confirm " +
		"'" + words + "'"
	w.call("set", "order", "--next", "3001", "--vouch-after-loss").wants(t, exitUsage, "", risk)
	w.call("set", "order", "--next", "3001", "--vouch-after-loss", "--confirm",
		"skip values of order below 3001").wants(t, exitUsage, "", "does not match")
	w.call("set", "order", "--next", "3001", "--vouch-after-loss", "--confirm",
		"order is unused from 3001 on in incarnation 1").wants(t, exitUsage, "", "does not match")
	if _, err := w.operator().Set(t.Context(), "order",
		seq.Change{Next: new(int64(3001)), VouchedIn: 1}); !errors.Is(err, seq.ErrLostAgain) {
		t.Errorf("vouched before the loss: %v", err)
	}
	w.call("set", "order", "--next", "3001", "--vouch-after-loss", "--confirm", words).wants(t, exitOK,
		"\nnext value ", "")
	if got, st := w.show("order"); got.Incarnation != st.Incarnation || got.Next != 3000 {
		t.Errorf("%+v", got)
	}

	// A new name may have existed before.
	w.call("create", "ticket").wants(t, exitFailure, "", "ticket: ZooKeeper has lost data before, so this name may")
	w.call("create", "ticket", "--start", "1").wants(t, exitOK, "created sequence ticket", "")
	w.losesData()
	w.call("list", "--prefix", "ti").wants(t, exitOK, "after-loss\n", "")
}

func TestSeqList(t *testing.T) {
	w := newSeqWorld(t)
	w.call("list").wants(t, exitOK, "no sequences found\n", "")
	for _, name := range []string{"order:eu", "order:us", "ticket/a"} {
		w.call("create", name).wants(t, exitOK, "created", "")
	}
	r := w.call("list", "--prefix", "order:")
	r.wants(t, exitOK, "\norder:eu  1     1    js   0%    1,000,000  "+whoami(), "")
	if strings.Contains(r.stdout, "ticket") {
		t.Error("--prefix is ignored")
	}
	w.call("list", "--prefix", "x").wants(t, exitOK, "no sequences found\n", "")

	var list struct {
		Incarnation, Changes int64
		Sequences            []seqReport
	}
	if w.json(&list, "list"); list.Incarnation != 0 || list.Changes != 3 || len(list.Sequences) != 3 ||
		list.Sequences[2].Name != "ticket/a" {
		t.Errorf("%+v", list)
	}
	var one seqReport
	if w.json(&one, "show", "order:us"); one.Name != "order:us" || one.ClusterIncarnation != 0 {
		t.Errorf("%+v", one)
	}
	w.call("show", "nope").wants(t, exitFailure, "", "nope: sequence not found. `flaked seq list` prints the names")
}

func TestSeqPurge(t *testing.T) {
	w := newSeqWorld(t)
	w.call("purge", "order").wants(t, exitFailure, "", "order: sequence not found")
	for _, name := range []string{"order", "late"} {
		w.call("create", name).wants(t, exitOK, "created", "")
	}
	w.call("purge", "order").wants(t, exitFailure, "", "order: the sequence is in use. `flaked seq delete order`")
	w.taken("late", 501)
	w.call("delete", "order", "--confirm", "delete sequence order").wants(t, exitOK, "can forget it after 0s.", "")
	w.call("delete", "late", "--confirm", "delete sequence late").wants(t, exitOK, "deleted", "")
	w.call("purge", "late").wants(t, exitFailure, "", "for another 2h0m30s. Purge it then")
	w.call("purge", "order").wants(t, exitUsage, "", "nothing will remember which values were issued by order. A new")
	w.call("purge", "order", "--confirm", "forget the values of order").wants(t, exitOK, "purged sequence order\n", "")
	w.call("show", "order").wants(t, exitFailure, "", "not found")
	w.show("late")
	w.call("create", "order").wants(t, exitOK, "created sequence order. Its first value is 1.\n", "")
}

func TestSeqWithoutNodes(t *testing.T) {
	w := newSeqWorld(t)
	if err := w.store.Delete(t.Context(), "/seq", store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"list", "show a", "create a", "set a --block 64", "delete a", "purge a"} {
		w.call(strings.Fields(args)...).wants(t, exitFailure, "", "no node of this cluster has served sequences yet.")
	}
	if err := w.store.Delete(t.Context(), "/cluster", store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"list", "create a"} {
		w.call(strings.Fields(args)...).wants(t, exitFailure, "", "cluster not found in this ZooKeeper. Check --zk")
	}
}
