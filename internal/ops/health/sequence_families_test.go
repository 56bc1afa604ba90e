package health

import (
	"testing"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

func section(name string, next, written int64) record.Named {
	return record.Named{Name: name, WrittenAt: written, Record: record.Record{
		Map: sequence.Map{Start: 1, Increment: 1, Max: 1000}, Mode: record.Ordered, Next: next, Credit: 100,
		Settings: record.Settings{Block: 32, SupplyMs: 1, HoldMs: 3000, Ceiling: 10, HardCeiling: 10},
		Owner:    "n", Address: "10.0.0.1:7609", Term: 1,
	}}
}

// An owner that does not renew its lease is a problem of a sequence, or of some sections. No owner at all is none.
func TestOwnerThatIsGoneIsAProblem(t *testing.T) {
	const now = 1_790_000_000_000
	ticks, free := section("ticks", 5, now-6001), section("free", 5, now-6001)
	free.Owner = ""
	family := func(name string, written ...int64) record.Named {
		n := record.Named{Name: name, Record: section("", 7, 0).Record}
		n.Owner, n.Record.SectionCount = "", len(written)
		for _, at := range written {
			n.Sections = append(n.Sections, section(name+"0", 7, at))
		}
		return n
	}
	lost, broken := family("lost:*", now, now), family("broken:*", now)
	lost.Sections = lost.Sections[1:]
	broken.Err = record.ErrDamaged
	var all []SequenceReport
	for _, n := range []record.Named{
		ticks, free, section("kept", 5, now-6000), family("msg:*", now-7000, now, now-9000), family("all:*", now),
		lost, broken,
	} {
		all = append(all, RecordedReport(n, record.State{}, now))
	}
	const want = "Damaged records of sequences: broken:* (not a sequence record of flaked), lost:* (1 of 2 sections " +
		"missing in ZooKeeper). Ordered sequences whose owner has not renewed its lease: msg:* (2 of 3 sections), " +
		"ticks (10.0.0.1:7609). "
	got, text := CountSequences(all), ""
	for _, p := range got.Problems(t0) {
		text += p.Text + ". "
	}
	if text != want || got.Count != 5 {
		t.Errorf("%d: %s\nwant\n%s", got.Count, text, want)
	}
}

// A node says what it knows of all sections of a family as of one sequence.
func TestSectionsAreOneFamily(t *testing.T) {
	use := func(name string, next int64, refusal record.Reason) mode.Use {
		return mode.Use{Name: name, Record: section(name, next, 0).Record, Held: 3, PerSecond: 2, FromOthers: 5,
			Lapses: 1, Owns: next == 7, Refusal: refusal}
	}
	all := NodeReports([]mode.Use{
		use("ticks", 7, ""), use("msg:*0", 7, ""), use("msg:*1", 999, record.NoOwner), use("msg:*2", 1000, ""),
	}, record.State{})
	if len(all) != 2 || all[0].Name != "ticks" || all[0].OwnedSections != 1 || all[1].Name != "msg:*" {
		t.Fatalf("%+v", all)
	}
	f := all[1]
	if r := f.Record; r.Next != 1000 || r.Term != 3 || r.Kind() != record.Family || r.Owner+r.Address != "" {
		t.Errorf("%+v", r)
	}
	if f.Held != 9 || f.PerSecond != 6 || f.Passed != 15 || f.Lapses != 3 || f.OwnedSections != 1 || f.KnownSections != 3 ||
		f.Taken != 1000 || f.Next != nil || f.Term != 3 || f.Owner != "" || f.State != SeqExhausted ||
		f.Why != "1 of 3 sections" || f.Refusal != record.NoOwner {
		t.Errorf("%+v", f)
	}
	f = NodeReports([]mode.Use{use("msg:*0", 7, ""), use("msg:*1", 8, record.NoOwner)}, record.State{})[0]
	if p, _ := f.problem(); f.State != SeqFamily || p.cause != rowSequencesNoOwner.cause || p.severity != Critical {
		t.Errorf("%+v", f)
	}
}

// Nobody takes the place of an owner that has ended before somebody asks. That is no problem while a node serves.
func TestOwnerThatIsGoneIsNoProblemWhileANodeServes(t *testing.T) {
	for _, row := range []struct {
		says     *Answer
		problems int
	}{
		{nil, 1}, {&Answer{Cause: "confirming"}, 1}, {&Answer{Ready: true}, 0},
		{&Answer{Ready: true, Sequences: CountSequences([]SequenceReport{
			NodeReport(mode.Use{Name: "ticks", Record: section("ticks", 5, 0).Record, Refusal: record.NoOwner}, record.State{}),
		})}, 1},
	} {
		d := Draft{Source: SourceZooKeeper, Workers: []WorkerReport{{State: Live, Says: row.says}},
			Sequences: CountSequences([]SequenceReport{RecordedReport(section("ticks", 5, 0), record.State{}, 9000)})}
		r := d.Complete()
		if n := len(r.Sequences.Problems(t0)); n != row.problems {
			t.Errorf("%+v: %v", row.says, r.Sequences.Problems(t0))
		}
	}
}

// A sequence whose owner is gone may be nearly used up, too. That stays a problem while a node serves.
func TestSequenceWithoutItsOwnerIsNearlyUsed(t *testing.T) {
	const near = "Sequences used to 80 % or more: ticks (90.0%). "
	for says, want := range map[*Answer]string{
		nil:           "Ordered sequences whose owner has not renewed its lease: ticks (10.0.0.1:7609). " + near,
		{Ready: true}: near,
		{Ready: true, Sequences: CountSequences([]SequenceReport{
			NodeReport(mode.Use{Name: "ticks", Record: section("ticks", 900, 0).Record}, record.State{}),
		})}: near,
	} {
		d := Draft{Source: SourceZooKeeper, Workers: []WorkerReport{{State: Live, Phase: "serving", Says: says}},
			Sequences: CountSequences([]SequenceReport{RecordedReport(section("ticks", 900, 0), record.State{}, 9000)})}
		r := d.Complete()
		text := ""
		for _, p := range r.Summary.Problems {
			text += p.Text + ". "
		}
		if text != want {
			t.Errorf("%+v: %s\nwant\n%s", says, text, want)
		}
	}
}
