package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/flaked/flaked/worker"
)

func TestGen(t *testing.T) {
	for _, row := range []struct {
		name, args string
		code       int
		out, err   string // out: all of it
	}{
		{"a moment", "3 --at 2026-01-01", exitOK, "2006515713438646272\n2006515713438646273\n2006515713438646274\n", ""},
		{"in milliseconds", "--at 1767225600000", exitOK, "2006515713438646272\n", ""},
		{"with a zone", "--at 2026-01-01T01:00:00+01:00", exitOK, "2006515713438646272\n", ""},
		{"by flag", "--count 2 --at 2026", exitOK, "2006515713438646272\n2006515713438646273\n", ""},
		{"a worker", "--at 2026-01-01 --worker 7", exitOK, "2006515713438674944\n", ""},
		{"a datacenter", "--at 2026-01-01 --worker 7 --datacenter 1 --layout twitter", exitOK, "2006515713438806016\n", ""},
		{"sonyflake", "2 --at 2026-01-01 --worker 7 --layout sonyflake", exitOK, "600114305433600007\n600114305433665543\n", ""},
		{"hex", "--at 2026-01-01 --format hex", exitOK, "1bd893690fc00000\n", ""},
		{"from 0 on", "2 --at 1288834974657 --format base58", exitOK, "11111111111\n11111111112\n", ""},
		{"first moment of all, too early", "--at 1288834974656", exitUsage, "", "its epoch, 2010-11-04T01:42:54Z, is in the future"},
		{"used up", "--layout uid-generator --at 2026-01-01", exitUsage, "", "--layout uid-generator at 2026-01-01T00:00:00Z: its time field was used up on 2024-11-20"},
		{"then", "--layout uid-generator --at 2024-01-01", exitOK, "8259861201341644800\n", ""},
		{"no such worker", "--worker 1024", exitUsage, "", "worker 1024 does not fit into 10 bits (0 to 1023). See `flaked gen --help`."},
		{"no datacenters", "--datacenter 1", exitUsage, "", "datacenter 1 does not fit into 0 bits"},
		{"no such format", "--format roman", exitUsage, "", `--format must be one of decimal, hex, base32, base36, base58, base62, not "roman"`},
		{"no such kind", "--kind ulid", exitUsage, "", `--kind must be snowflake, uuid4 or uuid7, not "ulid"`},
		{"a UUID's worker", "--kind uuid7 --worker 3", exitUsage, "", "--worker is only for snowflakes. Leave it out with --kind uuid7"},
		{"no number", "x", exitUsage, "", `COUNT must be a whole number of at least 1, not "x"`},
		{"two numbers", "3 --count 4", exitUsage, "", `COUNT and --count are both given. Give one of them`},
		{"nearly a number", "3x", exitUsage, "", `COUNT must be a whole number of at least 1, not "3x"`},
		{"none", "0", exitUsage, "", "COUNT must be 1 to 1000000000, not 0"},
		{"two numbers", "1 2", exitUsage, "", "expected one COUNT, got 2 arguments"},
		{"no moment", "--at noon", exitUsage, "", `--at: "noon" is not a time. Give one such as 2026-01-31T12:00:00Z`},
		{"no layout", "--layout x", exitUsage, "", `--layout: bad layout: "x" is not a preset`},
		{"no such start", "--sequence-start 7", exitUsage, "", "--sequence-start must be random, zero or carry-on, not \"7\""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := call(t, "", append([]string{"gen"}, strings.Fields(row.args)...)...)
			r.wants(t, row.code, row.out, row.err)
			if r.stdout != row.out {
				t.Errorf("all of stdout is %q, want %q", r.stdout, row.out)
			}
		})
	}
}

// If a tick has too few IDs, gen takes the next ticks without waiting, and prints
// the same at every run.
func TestGenContinuesIntoTheNextTick(t *testing.T) {
	for _, start := range []string{"zero", "random", "carry-on"} {
		args := []string{"gen", "10000", "--at", "2026-01-01", "--worker", "7", "--sequence-start", start}
		first, second := call(t, "", args...), call(t, "", args...)
		if first.code != 0 || first.stdout != second.stdout {
			t.Errorf("%s: two runs differ, %d %s", start, first.code, first.stderr)
		}
		ids := strings.Fields(first.stdout)
		last, ticks := int64(-1), map[worker.Tick]bool{}
		for _, text := range ids {
			id, err := strconv.ParseInt(text, 10, 64)
			f, err2 := worker.Leaf().Decode(worker.ID(id))
			if err != nil || err2 != nil || id <= last || f.Worker != 7 {
				t.Fatalf("%s: %q after %d: %v %v", start, text, last, err, err2)
			}
			last, ticks[f.Tick] = id, true
		}
		if len(ids) != 10000 || len(ticks) != 3 {
			t.Errorf("%s: %d IDs in %d ticks, want 10000 in 3", start, len(ids), len(ticks))
		}
	}
}

func TestGenNow(t *testing.T) {
	before := time.Now().Truncate(time.Millisecond)
	r := call(t, "", "gen", "5000")
	after := time.Now()
	ids := strings.Fields(r.stdout)
	if r.code != 0 || len(ids) != 5000 {
		t.Fatalf("%d IDs, %d %s", len(ids), r.code, r.stderr)
	}
	for _, i := range []int{0, 4999} {
		d, err := decodeID(worker.Leaf(), ids[i])
		if at := time.UnixMilli(d.TimestampMs); err != nil || at.Before(before) || at.After(after) {
			t.Errorf("%s was made at %s, between %s and %s? %v", ids[i], at, before, after, err)
		}
	}
}

func TestGenUUIDs(t *testing.T) {
	for kind, version := range map[string]uuid.Version{"uuid4": 4, "uuid7": 7} {
		r := call(t, "", "gen", "100", "--kind", kind)
		ids := strings.Fields(r.stdout)
		if r.code != 0 || len(ids) != 100 {
			t.Fatalf("%+v", r)
		}
		for _, text := range ids {
			if id, err := uuid.Parse(text); err != nil || id.Version() != version {
				t.Errorf("%s: %q is version %d, %v", kind, text, id.Version(), err)
			}
		}
		if kind == "uuid7" && !slices.IsSorted(ids) {
			t.Error("they do not sort by time")
		}
		slices.Sort(ids)
		if len(slices.Compact(ids)) != 100 {
			t.Error("one came twice")
		}
	}
}

// The warning must be in the help.
func TestGenHelpWarnsOfMissingCoordination(t *testing.T) {
	help := call(t, "", "gen", "--help").stdout
	for _, want := range []string{"COORDINATES WITH NOBODY", "Use `flaked get`"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help does not say %q", want)
		}
	}
}
