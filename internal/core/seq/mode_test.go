package seq

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// A later version of flaked has written a record. It is not damaged: another node can use it.
func TestUnknownModeIsNotDamage(t *testing.T) {
	for _, name := range []string{"order", "order:*"} { // order:1 is asked for if the record is a template
		t.Run(name, func(t *testing.T) {
			s, a := newOrder(t)
			s.createTemplate("order:*", 1, 3)
			a.ask("order", 1, false).first()
			data, _, err := s.Mem.Peek(record.Path(name))
			if err != nil {
				t.Fatal(err)
			}
			later := bytes.Replace(data, []byte(`{`), []byte(`{"mode":"sorted",`), 1)
			s.write(record.Path(name), later)
			a.noteLoss()
			s.run(time.Minute)
			c := a.ask(strings.TrimSuffix(name, "*")+strings.Repeat("1", strings.Count(name, "*")), 1, false)
			if r := c.reason(); r != record.Frozen || !strings.Contains(c.err.Error(), "mode that this node does not know") {
				t.Error(c.err)
			}
			_, _, err = s.operator().Find(t.Context(), name)
			if !errors.Is(err, record.ErrUnknownMode) || !strings.Contains(err.Error(), "sorted") {
				t.Error(err)
			}
		})
	}
}

func TestUnknownModeIsNeitherCreatedNorRemembered(t *testing.T) {
	s, a := newOrder(t)
	d := operator.Definition{Name: "x", Mode: "sorted", Map: plain(), Settings: settings(1000), StartGiven: true}
	if _, err := s.operator().Create(t.Context(), d); !errors.Is(err, record.ErrUnknownMode) {
		t.Error(err)
	}
	a.ask("order", 1, false).first()
	w, _ := a.is.witness()
	r := *w.Records["order"]
	r.Mode = "sorted"
	w.Records["order"] = &r
	dir := &memDir{}
	if err := saveWitness(dir, w); err != nil {
		t.Fatal(err)
	}
	if w, ok := loadWitness(dir); ok {
		t.Errorf("%+v", w)
	}
}
