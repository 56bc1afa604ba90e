package seq

import (
	"fmt"
	"slices"
	"testing"
)

func TestJudge(t *testing.T) {
	known := usual(nil)
	tombstone := usual(func(r *Record) { r.DeletedAt = 1 })
	for name, c := range map[string]struct {
		found, known *Record
		purged       int64
		want         finding
	}{
		"nothing is known": {nil, nil, 0, foundAbsent},
		"a new record":     {&known, nil, 0, foundGood},
		"the known record": {&known, &known, 0, foundGood},
		"a later write":    {ptr(usual(func(r *Record) { r.Gen++ })), &known, 0, foundGood},
		"an earlier write": {ptr(usual(func(r *Record) { r.Gen-- })), &known, 0, foundLost},
		"a later incarnation with fewer writes": {ptr(usual(func(r *Record) { r.Incarnation, r.Gen = 2, 1 })),
			&known, 0, foundGood},
		"an earlier incarnation with more writes": {&known,
			ptr(usual(func(r *Record) { r.Incarnation, r.Gen = 2, 1 })), 0, foundLost},
		"another write with as many before": {ptr(usual(func(r *Record) { r.Nonce = "x" })), &known, 0, foundLost},
		"missing":                           {nil, &known, 9, foundLost},
		"deleted and purged meanwhile":      {nil, &known, 10, foundAbsent},
		"a tombstone is missing":            {nil, &tombstone, 9, foundLost},
		"a tombstone was purged":            {nil, &tombstone, 10, foundAbsent},
		"a tombstone is alive again in an old copy": {ptr(usual(func(r *Record) { r.Gen-- })), &tombstone, 0,
			foundLost},
	} {
		if got := judge(c.found, c.known, c.purged); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}

func TestPutBack(t *testing.T) {
	older := func(r *Record) { r.Gen, r.Next = 8, 60 }
	rival := func(r *Record) { r.Nonce, r.Next, r.Gen = "rival", 90, 12 }
	for name, c := range map[string]struct {
		found         *Record
		known         Record
		highest       int64
		due           bool
		id            string
		next, gen, at int64
	}{
		"missing":         {nil, usual(nil), 100, true, "id", 100, 10, 0},
		"an older record": {ptr(usual(older)), usual(nil), 100, true, "id", 100, 10, 0},
		"the known one":   {ptr(usual(nil)), usual(nil), 100, false, "id", 100, 10, 0},
		"a newer one": {ptr(usual(func(r *Record) { r.Gen, r.Next = 12, 130 })),
			usual(nil), 100, false, "id", 130, 12, 0},
		"a newer one with a lower next": {ptr(usual(func(r *Record) { r.Gen, r.Next, r.At = 12, 60, 7 })),
			usual(nil), 100, true, "id", 100, 12, 7},
		"next was once higher": {ptr(usual(func(r *Record) { r.Gen = 12 })),
			usual(func(r *Record) { r.Gen = 12 }), 500, true, "id", 500, 12, 0},
		"an older life": {ptr(usual(func(r *Record) {
			r.ID, r.Gen, r.Next = "old", 8,
				900
		})), usual(nil), 100, true, "id", 100, 10, 0},
		"a newer life": {ptr(usual(func(r *Record) { r.ID, r.Gen, r.Next = "new", 12, 5 })),
			usual(nil), 100, false, "new", 5, 12, 0},
		"a rival": {ptr(usual(rival)), usual(func(r *Record) { r.Gen = 12 }), 100, true, "id", 100, 12, 0},
		"a rival with a higher next": {ptr(usual(func(r *Record) { rival(r); r.Next = 130 })),
			usual(func(r *Record) { r.Gen = 12 }), 100, true, "id", 130, 12, 0},
		"a rival of an older life": {ptr(usual(rival)), usual(func(r *Record) { r.ID, r.Gen = "new", 12 }), 100,
			true, "new", 100, 12, 0},
		"a rival of a newer life": {ptr(usual(func(r *Record) { rival(r); r.ID, r.Above = "new", 500 })),
			usual(func(r *Record) { r.Gen = 12 }), 100, true, "new", 90, 12, 0},
		"a later incarnation with fewer writes": {ptr(usual(func(r *Record) {
			r.Incarnation, r.Gen, r.Next = 2, 3,
				900
		})), usual(nil), 100, false, "id", 900, 10, 0},
	} {
		r, due := putBack(c.found, c.known, c.highest)
		if due != c.due || r.ID != c.id || r.Next != c.next || r.Gen != c.gen || r.At != c.at {
			t.Errorf("%s: %v, %+v", name, due, r)
		}
	}
}

func TestSince(t *testing.T) {
	var s State
	for k := range 70 {
		s = s.after(fmt.Sprint("s", k))
	}
	for changes, want := range map[int64]struct {
		names int
		all   bool
	}{70: {0, false}, 69: {1, false}, 6: {64, false}, 5: {0, true}, 71: {0, true}} {
		names, all := s.since(changes)
		if len(names) != want.names || all != want.all || len(names) > 0 && names[len(names)-1] != "s69" {
			t.Errorf("since %d: %v, %v", changes, names, all)
		}
	}
	if names, _ := s.since(68); !slices.Equal(names, []string{"s68", "s69"}) {
		t.Error(names)
	}
}
