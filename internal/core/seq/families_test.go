package seq

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

func ofFamily(name string, sections int) operator.Definition {
	set := settings(1000)
	set.HoldMs = record.DefaultLease.Milliseconds()
	return operator.Definition{Name: name, Map: plain(), Settings: set, Mode: record.Ordered, Sections: sections}
}

// After a loss of data, what a family has issued is known if all its sections have taken blocks since.
func TestFamilyAfterALossNeedsAStart(t *testing.T) {
	s := newStage(t)
	d := ofFamily("msg:*", 2)
	create := func() error {
		_, err := s.operator().Create(t.Context(), d)
		return err
	}
	s.node()
	s.creates(d)
	s.raise(0)
	s.run(stageConfirm)
	s.remove("msg:*")
	s.setTime(100_000)
	if err := create(); !errors.Is(err, operator.ErrStartNeeded) {
		t.Error(err)
	}
	d.StartGiven, d.Start = true, 500
	if err := create(); err != nil {
		t.Error(err)
	}
	n, _, err := s.operator().Find(t.Context(), "msg:*")
	if err != nil || n.Sections[1].Value(n.Sections[1].Next) != 500 || n.Sections[1].Above != 499 {
		t.Errorf("%+v, %v", n, err)
	}
}

// A family has all names with its prefix.
func TestNothingIsCreatedInTheNamesOfAFamily(t *testing.T) {
	s := newStage(t)
	s.node()
	create := func(d operator.Definition) error {
		_, err := s.operator().Create(t.Context(), d)
		return err
	}
	one := func(name string) operator.Definition {
		d := operator.Definition{Name: name, Map: plain(), Settings: settings(1000)}
		if positions.IsPattern(name) {
			d.MaxNames = 9
		}
		return d
	}
	for _, d := range []operator.Definition{
		one("order"), one("a:b"), one("a:"), one("b:c:*"), one("gone:x"), ofFamily("msg:*", 2), ofFamily("c:d:*", 1),
		one("e:*"), ofFamily("e:f:*", 1), one("msg"), one("msg:"), ofFamily("a-*", 1), one("msg_x"),
	} {
		if err := create(d); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	s.run(3 * time.Second)
	s.remove("gone:x")
	refused := func(d operator.Definition, family string, within ...string) {
		t.Helper()
		err := create(d)
		e, is := errors.AsType[*operator.FamilyError](err)
		if !is || e.Family != family || !slices.Equal(e.Within, within) {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	refused(one("msg:alice"), "msg:*")
	refused(one("msg:a:b:c"), "msg:*")
	refused(one("msg:a:*"), "msg:*")
	refused(ofFamily("msg:a:*", 2), "msg:*")
	refused(ofFamily("a:*", 2), "a:*", "a:b")
	refused(ofFamily("b:*", 2), "b:*", "b:c:*")
	refused(ofFamily("c:*", 2), "c:*", "c:d:*")
	refused(ofFamily("gone:*", 2), "gone:*", "gone:x")
	if err := create(ofFamily("e:*", 1)); !errors.Is(err, operator.ErrExists) {
		t.Error(err)
	}
	s.run(3 * time.Second)
	s.remove("msg:*")
	refused(one("msg:alice"), "msg:*")
	if err := create(one("msg:*")); err == nil || !strings.HasPrefix(err.Error(), "sections must be given") {
		t.Error(err)
	}
}

// A node creates a sequence from a template whose prefix has that of a family, just when the family is created.
func TestFamilyIsNotCreatedAroundANewSequence(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.createTemplate("a:*", 1, 9)
	s.run(5 * time.Second)
	o, asked := s.operator(), false
	session := s.Mem.Session()
	session.SetFault(func(c memzk.Call) memzk.Fault {
		if c.Op == "multi" && !asked {
			asked = true
			a.ask("a:b:x", 1, false).finish()
		}
		return memzk.NoFault
	})
	o.Store = session
	_, err := o.Create(t.Context(), ofFamily("a:b:*", 2))
	if e, is := errors.AsType[*operator.FamilyError](err); !is || len(e.Within) != 1 || !asked {
		t.Error(err, asked)
	}
}

// The sections of all lives of a family are read when its record has changed. Only those of the present life have
// names.
func TestFamiliesFollowTheirRecords(t *testing.T) {
	var all families
	life := func(gen int64, sections int) *record.Record {
		return &record.Record{WriteCount: gen, SectionCount: sections}
	}
	deleted := life(3, 2)
	deleted.DeletedAt = 1
	three := []string{"m:*0", "m:*1", "m:*2"}
	for _, step := range []struct {
		name     string
		r        *record.Record
		changed  []string
		sections int // of the family of m:a, 0 for none
	}{
		{"m:*", &record.Record{WriteCount: 1, MaxNames: 5}, nil, 0}, // a template
		{"m:*", life(2, 2), three[:2], 2},
		{"m:*", life(2, 2), nil, 2},
		{"m:a", life(9, 0), nil, 2}, // no name of a family
		{"m:*", deleted, three[:2], 0},
		{"m:*", life(4, 3), three, 3},
		{"m:*", life(5, 1), three, 1}, // the tombstones of the others stay
		{"m:*", nil, three, 0},        // purged
		{"m:*", nil, nil, 0},
	} {
		all.update(step.name, step.r)
		sections, f := 0, all.of([]byte("m:a"))
		if f != nil {
			sections = f.count()
		}
		if changed := all.popChanged(); !slices.Equal(changed, step.changed) || sections != step.sections {
			t.Errorf("%+v: %q and %d sections", step, changed, sections)
		}
	}
	all.update("m:*", life(6, 2))
	if all.of([]byte("m:")) != nil || all.of([]byte("n:a")) != nil {
		t.Error("a name without the prefix, or without more, belongs to the family")
	}
	f := all.of([]byte("m:a"))
	k, _ := f.sectionAndLane([]byte("m:a"))
	one := new(series)
	if f.setSeries(k, one); f.series(k) != one || f.series(1-k) != nil {
		t.Error("a section is not what was noted of it")
	}
}
