package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flaked/flaked/clusterview"
)

const leafRows = "biz_tag\tmax_id\tstep\norder\t2001\t100\nuser\t1\t10\n"

func TestSeqImportHoldsUntilVerified(t *testing.T) {
	w := newSeqWorld(t)
	from := []string{"import", "--from", "leaf"}
	w.reads(leafRows, append(from, "--dry-run")...).wants(t, exitOK, "LINE  NAME   SOURCE  NEXT  OUTCOME\n   2  order    2001  3001  created\n   3  user        1   101  created\n2 created. Nothing was changed.\n", "")
	if _, _, err := w.operator().Show(t.Context(), "order"); err == nil {
		t.Fatal("a dry run creates a sequence")
	}
	w.reads(leafRows, from...).wants(t, exitOK, "2 created. The new sequences are held. Stop all", "")
	if r, _ := w.show("order"); !r.Held || r.Source != "leaf" || r.Start != 1 || r.Next != 3000 || r.HoldMs != seqLease.Milliseconds() {
		t.Errorf("%+v", r)
	}
	w.reads(leafRows, from...).wants(t, exitOK, "2 imported before.", "")
	w.call("list").wants(t, exitOK, "  held\n", "")
	w.call("show", "order").wants(t, exitOK, "held: it was imported from leaf. `flaked seq import --from leaf --verify --start` starts it", "")
	w.reads("order\t3001\nuser\t101\n", append(from, "--verify")...).wants(t, exitOK, "3001  3001  verified\n   2  user      101   101  verified\n2 verified.\n", "")
	if r, _ := w.show("order"); !r.Held {
		t.Error("a verification without --start starts")
	}
	w.reads("order\t3001\nuser\t101\n", append(from, "--verify", "--start")...).wants(t, exitOK, "2 started. Connected nodes follow within a heartbeat, 3s by default.\n", "")
	if r, _ := w.show("order"); r.Held || r.Next != 3000 {
		t.Errorf("%+v", r)
	}
	w.reads("order\t3001\n", append(from, "--verify", "--start")...).wants(t, exitOK, "1 started before.\n", "")
	w.reads("order\t3002\n", append(from, "--verify", "--start")...).wants(t, exitFailure, "1 behind the source.\n", "although the sequence is started: numbers may have been issued twice")
	w.reads(leafRows, from...).wants(t, exitOK, "2 started before.", "")
}

func TestSeqImportStartsNothingThatIsNotVerified(t *testing.T) {
	w := newSeqWorld(t)
	from := []string{"import", "--from", "leaf"}
	verify := append(from, "--verify", "--start")
	w.reads("order\t2001\t100\n", verify...).wants(t, exitFailure, "not imported", "flaked: 1 row cannot be verified. No sequence was started. Line 1: there is no sequence order that was imported from this source. Import it first")
	w.reads(leafRows, from...).wants(t, exitOK, "created", "")
	w.reads("order\t3002\t100\nuser\t50\t10\n", verify...).wants(t, exitFailure, "1 behind the source, 1 verified.\n", "flaked: 1 row cannot be verified. No sequence was started. Line 1: the source has issued 1 numbers of order from the next value on. Make sure")
	for _, name := range []string{"order", "user"} {
		if r, _ := w.show(name); !r.Held {
			t.Errorf("%s is started", name)
		}
	}
	w.reads("order\t3002\t100\n", append(verify, "--raise", "--dry-run")...).wants(t, exitOK, "3002  4002  raised\n1 raised. Nothing was changed.\n", "")
	w.reads("order\t3002\t100\nuser\t50\t10\n", append(verify, "--raise", "--margin", "0")...).wants(t, exitOK, "3002  3002  started\n", "")
	if r, _ := w.show("order"); r.Held || r.Next != 3001 {
		t.Errorf("%+v", r)
	}
}

func TestSeqImportOfStrides(t *testing.T) {
	w := newSeqWorld(t)
	row := "order\t100000\t1000\t2\t1\n"
	from := []string{"import", "--from", "tinyid", "--margin", "0", "--max", "int32"}
	w.reads(row, from...).wants(t, exitOK, "100001  100001  created", "")
	if r, _ := w.show("order"); r.Start != 1 || r.Increment != 2 || r.Value(r.Next) != 100_001 || r.Ceiling != int32Ceiling {
		t.Errorf("%+v", r)
	}
	for _, changed := range []string{"order\t100000\t1000\t2\t0\n", "order\t100000\t1000\t1\t0\n"} {
		w.reads(changed, append(from, "--verify", "--start")...).wants(t, exitFailure, "other increment or offset", "Line 1: the increment or the offset of order has changed")
	}
	w.reads(row, append(from, "--verify", "--start", "--raise")...).wants(t, exitOK, "1 started.", "")
}

func TestSeqImportChangesNoOtherSequence(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "order").wants(t, exitOK, "created", "")
	w.reads(leafRows, "import", "--from", "leaf").wants(t, exitDegraded, "2  order    2001     1  exists\n   3  user        1   101  created\n", "these sequences exist, and no import from leaf created them, so they are not changed: order. Import")
	if r, _ := w.show("order"); r.Held || r.Next != 0 {
		t.Errorf("%+v", r)
	}
	w.reads(leafRows, "import", "--from", "leaf", "--verify", "--start").wants(t, exitFailure, "not imported", "there is no sequence order that was imported")
	w.reads(leafRows, "import", "--from", "leaf", "--prefix", "shop:", "--rename", "user=customer").wants(t, exitOK, "shop:order    2001  3001  created\n   3  customer", "")
}

func TestSeqImportChecksAllRowsFirst(t *testing.T) {
	for _, c := range []struct{ rows, flags, want string }{
		{"order\t1\n2nd\t1\n", "", "rows cannot be imported, and nothing was changed: line 2: the name of a sequence must begin with a letter, not '2'. Give another name with --rename '2nd=NAME', or --prefix"},
		{"order\t1\nuser\t9007199254740991\n", "", "rows cannot be imported, and nothing was changed: line 2: user: the next value would be 9907919180215090, above the max 9007199254740991. Give a higher --max, or a smaller --margin"},
		{"order\t1\nuser\t9223372036854775807\n", "--max int64", "rows cannot be imported, and nothing was changed: line 2: user: the margin leads above the greatest 64-bit number. Give a smaller --margin"},
		{"order\tx\n", "", "rows cannot be imported, and nothing was changed: line 1: max_id is \"x\", not a whole number of 64 bits"},
	} {
		w := newSeqWorld(t)
		w.reads(c.rows, append([]string{"import", "--from", "leaf"}, strings.Fields(c.flags)...)...).wants(t, exitFailure, "", "flaked: "+c.want)
		w.call("list").wants(t, exitOK, "no sequences found\n", "")
	}
}

func TestSeqImportUsage(t *testing.T) {
	w := newSeqWorld(t)
	for _, c := range []struct{ flags, want string }{
		{"", "--from is needed"},
		{"--from oracle", `--from oracle: must be one of leaf, tinyid, mysql, postgres, redis, not "oracle"`},
		{"--from leaf order", `unexpected argument "order"`},
		{"--from leaf --start", "--start and --raise need --verify"},
		{"--from leaf --margin much", "--margin much: must be a number such as 1000, or a part such as 10%"},
		{"--from leaf --ceiling 0", "--ceiling must be 1 or more"},
		{"--from leaf --max none", "--max: \"none\" is not"},
		{"--from leaf --prefix 1", "--prefix 1: "},
		{"--from leaf --rename order", `--rename must be OLD=NEW, not "order"`},
		{"--from leaf --rename no=other", "--rename no=other: no row has this name"},
		{"--from leaf --wait 0s", "--wait must be more than 0s"},
	} {
		w.reads(leafRows, append([]string{"import"}, strings.Fields(c.flags)...)...).wants(t, exitUsage, "", c.want)
	}
	w.reads("", "import", "--from", "redis").wants(t, exitUsage, "", "standard input has no rows. Each has name, value")
}

func TestSeqImportInJSON(t *testing.T) {
	w := newSeqWorld(t)
	var got importReport
	r := w.reads(leafRows, "import", "--from", "leaf", "-o", "json", "--wait", "1s")
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != exitOK {
		t.Fatalf("%v %+v", err, r)
	}
	if !got.Changed || got.DryRun || len(got.Rows) != 2 || got.Rows[0].SourceNext != 2001 || *got.Rows[0].Next != 3001 || got.Wait == nil || !got.Wait.Followed {
		t.Errorf("%+v", got)
	}
	var list struct{ Sequences []seqReport }
	if w.json(&list, "list"); list.Sequences[0].State != clusterview.SeqHeld || list.Sequences[0].Source != "leaf" {
		t.Errorf("%+v", list.Sequences[0])
	}
}
