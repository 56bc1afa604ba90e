package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
)

// valuesOf returns the map of a sequence with its key.
func (w *seqWorld) valuesOf(name string) sequence.Values {
	w.t.Helper()
	r, _ := w.show(name)
	k, err := w.operator().Key(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return sequence.NewValues(r.Map, k)
}

func TestSeqVerify(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "ticket", "--salt", "16").wants(t, exitOK, "created sequence ticket. Its map is salt-16, and its key is in ZooKeeper.\n", "")
	if _, err := w.operator().Set(t.Context(), "ticket", seqstore.Change{NextPosition: new(int64(100))}); err != nil {
		t.Fatal(err)
	}
	v := w.valuesOf("ticket")
	taken, later := v.Value(99), v.Value(100)
	w.call("verify", "ticket", fmt.Sprint(taken)).wants(t, exitOK, fmt.Sprintf("\n%d        99  taken\n", taken), "")
	w.call("verify", "ticket", fmt.Sprint(taken), fmt.Sprint(taken^1), fmt.Sprint(later)).wants(t, exitFailure,
		"  not a value of ticket\n", "flaked: 2 of 3 numbers: not a value of ticket that nodes have taken\n")
	w.call("verify", "ticket", fmt.Sprint(later)).wants(t, exitFailure, "  not taken yet\n", "flaked: 1 of 1 number: not a value of ticket that nodes have taken\n")

	var report verifyReport
	w.json(&report, "verify", "ticket", fmt.Sprint(taken))
	if p := report.Values[0]; !p.Ours || !p.Taken || p.Position == nil || *p.Position != 99 || report.Map != "salt-16" {
		t.Errorf("%+v", report)
	}
	w.call("create", "order", "--increment", "10")
	w.call("verify", "order", "11").wants(t, exitFailure, "1  not taken yet\n", "1 of 1 number")
	w.call("verify", "order", "12").wants(t, exitFailure, "-  not a value of order\n", "1 of 1 number")
	w.call("verify", "order").wants(t, exitUsage, "", "expected a sequence and one number or more")
	w.call("verify", "order", "x").wants(t, exitUsage, "", `"x" is not a number`)
	w.call("verify", "nope", "1").wants(t, exitFailure, "", "nope: sequence not found")
}

func TestSeqKey(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "ticket", "--scatter", "34", "--start", "1000000000", "--max", "9999999999").wants(t, exitOK, "\nmap                      scatter-34\n", "")
	r := w.call("key", "ticket")
	k, err := sequence.ParseKey(strings.TrimSpace(r.stdout))
	if record, _ := w.show("ticket"); err != nil || sequence.NewValues(record.Map, k) != w.valuesOf("ticket") {
		t.Errorf("%+v: %v", r, err)
	}
	var report keyReport
	if w.json(&report, "key", "ticket"); report.Key != k.Hex() || report.Start != 1_000_000_000 || report.Scatter != 34 || report.Max != 9_999_999_999 {
		t.Errorf("%+v", report)
	}
	for _, args := range [][]string{{"show", "ticket"}, {"show", "ticket", "-o", "json"}, {"list"}, {"list", "-o", "json"}, {"export"}} {
		if r := w.call(args...); r.code != exitOK || strings.Contains(r.stdout, k.Hex()) {
			t.Errorf("%v: %+v", args, r)
		}
	}
	w.call("create", "order")
	w.call("key", "order").wants(t, exitFailure, "", "order is neither salted nor scattered")
	w.call("verify", "order:*", "3").wants(t, exitUsage, "", "order:* is a template and has no values. Name a sequence")
	w.call("key", "order:*").wants(t, exitUsage, "", "order:* is a template and has no key")
	record, _ := w.show("ticket")
	if err := w.store.Delete(t.Context(), "/seq/k/"+record.ID, 0); err != nil {
		t.Fatal(err)
	}
	w.call("key", "ticket").wants(t, exitFailure, "", "ticket: the key of the sequence is missing in ZooKeeper")
}

func TestSeqSetOfScattered(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "ticket", "--scatter", "40")
	w.call("set", "ticket", "--next", "50").wants(t, exitFailure, "", "--next: ticket is scattered, and its values have no order. Use --next-position")
	w.call("set", "ticket", "--max", "int64").wants(t, exitFailure, "", "--max: ticket is scattered, so its max cannot change")
	w.call("set", "ticket", "--next-position", "-1").wants(t, exitFailure, "", "--next-position: it must be 0 to 1099511627775 for ticket, not -1")
	w.call("set", "ticket", "--next-position", "1", "--next", "1").wants(t, exitUsage, "", "both given")
	r := w.call("set", "ticket", "--next-position", "50", "--confirm", "skip positions of ticket below 50")
	r.wants(t, exitOK, "next position  0       50\n", "")
	if got, _ := w.show("ticket"); got.Next != 50 || got.From != 50 {
		t.Errorf("%+v", got)
	}
	w.losesDataOf("ticket")
	words := "ticket is unused from position 90 on in epoch 2"
	w.call("set", "ticket", "--next-position", "90", "--vouch-after-loss", "--confirm", words).wants(t, exitOK, "changed sequence ticket", "")
	w.call("delete", "ticket").wants(t, exitUsage, "", "whose next value is secret.")
	w.call("create", "salted", "--salt", "8", "--start", "1")
	w.call("set", "salted", "--next", "2560", "--confirm", "skip values of salted below 2560").wants(t, exitOK, "next position  0       9\n", "")
	w.call("create", "bad", "--salt", "8", "--scatter", "40").wants(t, exitUsage, "", "--salt must not be combined with scatter")
	w.call("create", "bad", "--scatter", "63").wants(t, exitUsage, "", "--scatter must have fewer than 63 bits")
	w.call("create", "bad", "--salt", "17").wants(t, exitUsage, "", "--salt must be 1 to 16 bits, not 17")
	w.call("delete", "ticket", "--confirm", "delete sequence ticket").wants(t, exitOK, "deleted sequence ticket", "")
	w.call("create", "ticket", "--scatter", "40").wants(t, exitFailure, "", "ticket: --start must be above 1099511627776, the highest value")
	w.call("create", "t:*", "--scatter", "40", "--start", "1").wants(t, exitOK, "at its first use, with a key of its own.\n", "")
	w.call("set", "t:*", "--next-position", "9").wants(t, exitFailure, "", "t:* is a template of scattered sequences")
}
