package ordered

import (
	"slices"
	"testing"

	"github.com/flaked/flaked/internal/core/seq/record"
)

// The sections of all lives of a family are read when its record has changed. Only those of the present life have names.
func TestFamilies(t *testing.T) {
	var all Families[int]
	life := func(gen int64, sections int) *record.Record { return &record.Record{Gen: gen, Sections: sections} }
	deleted := life(3, 2)
	deleted.DeletedAt = 1
	three := []string{"m:*0", "m:*1", "m:*2"}
	for _, step := range []struct {
		name     string
		r        *record.Record
		changed  []string
		sections int // of the family of m:a, 0 for none
	}{
		{"m:*", &record.Record{Gen: 1, MaxNames: 5}, nil, 0}, // a template
		{"m:*", life(2, 2), three[:2], 2},
		{"m:*", life(2, 2), nil, 2},
		{"m:a", life(9, 0), nil, 2}, // no name of a family
		{"m:*", deleted, three[:2], 0},
		{"m:*", life(4, 3), three, 3},
		{"m:*", life(5, 1), three, 1}, // the tombstones of the others stay
		{"m:*", nil, three, 0},        // purged
		{"m:*", nil, nil, 0},
	} {
		all.Know(step.name, step.r)
		sections, f := 0, all.Of([]byte("m:a"))
		if f != nil {
			sections = f.Sections()
		}
		if changed := all.PopChanged(); !slices.Equal(changed, step.changed) || sections != step.sections {
			t.Errorf("%+v: %q and %d sections", step, changed, sections)
		}
	}
	all.Know("m:*", life(6, 2))
	if all.Of([]byte("m:")) != nil || all.Of([]byte("n:a")) != nil {
		t.Error("a name without the prefix, or without more, belongs to the family")
	}
	f := all.Of([]byte("m:a"))
	k, _ := f.Place([]byte("m:a"))
	if f.Note(k, new(7)); *f.Series(k) != 7 || f.Series(1-k) != nil {
		t.Error("a section is not what was noted of it")
	}
}
