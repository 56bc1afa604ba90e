package seq

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// A node reads all sections of a family when an operator has changed it, also those that nobody asks for: only a node
// that knows a record can put it back.
func TestNodesFollowTheSectionsOfAFamily(t *testing.T) {
	s := newStage(t)
	a := s.node()
	known := func() (all []record.Kind) {
		for k := range 3 {
			kind := record.None
			if one := a.is.issuer.series.find(record.SectionName("msg:*", k)); one != nil {
				kind = one.Known.Kind()
			}
			all = append(all, kind)
		}
		return all
	}
	wants := func(when string, want ...record.Kind) {
		t.Helper()
		_, st, err := s.operator().Find(t.Context(), "msg:*")
		if err != nil && !errors.Is(err, operator.ErrNotFound) {
			t.Fatal(err)
		}
		for range 10 {
			if a.is.issuer.Followed().Last.Number >= st.Changes {
				break
			}
			s.run(time.Second)
		}
		if got := known(); !slices.Equal(got, want) || a.is.issuer.Followed().Last.Number != st.Changes {
			t.Errorf("%s: the node has followed %d of %d changes, and knows %v, not %v", when,
				a.is.issuer.Followed().Last.Number, st.Changes, got, want)
		}
	}
	for _, sections := range []int{3, 2} {
		s.creates(ofFamily("msg:*", sections))
		if sections == 3 {
			wants("created", record.Sequence, record.Sequence, record.Sequence)
		} else {
			wants("created again", record.Sequence, record.Sequence, record.Tombstone)
		}
		s.remove("msg:*")
		wants("deleted", record.Tombstone, record.Tombstone, record.Tombstone)
	}
	if err := s.operator().Purge(t.Context(), "msg:*"); err != nil {
		t.Fatal(err)
	}
	wants("purged", record.None, record.None, record.None)
}

// A family that was deleted has issued values of its names. So a template whose prefix contains its own creates none.
func TestTemplateCreatesNoNameOfADeletedFamily(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.createTemplate("a:*", 1, 9)
	s.creates(ofFamily("a:b:*", 2))
	s.run(5 * time.Second)
	s.remove("a:b:*")
	s.run(5 * time.Second)
	if r := a.ask("a:b:x", 1, false).reason(); r != record.NoSequence {
		t.Error(r)
	}
	a.ask("a:x", 1, false).first()
}
