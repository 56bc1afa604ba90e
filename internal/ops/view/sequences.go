package view

import (
	"fmt"
	"strings"

	"github.com/flaked/flaked/internal/core/seq"
)

// The states of a named sequence.
const (
	SeqInUse     = "in-use"
	SeqTemplate  = "template"
	SeqAfterLoss = "after-loss"
	SeqFrozen    = "frozen"
	SeqExhausted = "exhausted"
	SeqDeleted   = "deleted"
)

// SequenceState returns the state of a sequence by its record.
func SequenceState(r seq.Record, st seq.State) string {
	s := r.Standing(st)
	switch {
	case r.Kind() == seq.Tombstone:
		return SeqDeleted
	case r.Next >= r.Positions(), s.Refusal == seq.NoSequence:
		return SeqExhausted
	case s.Refusal == seq.Frozen:
		return SeqFrozen
	case r.Incarnation < st.Incarnation:
		return SeqAfterLoss
	case r.Kind() == seq.Template:
		return SeqTemplate
	}
	return SeqInUse
}

// NearlyUsed is the used part from which a sequence needs attention.
const NearlyUsed = 0.8

// Taken returns how many of all values nodes have taken. For a template, it is how many of the
// sequences that it may create exist.
func Taken(r seq.Record) (done, all int64) {
	if r.MaxNames > 0 {
		return r.Names, r.MaxNames
	}
	return r.Next, r.Positions()
}

// Part returns done as a part of all, from 0 to 1.
func Part(done, all int64) float64 { return min(1, float64(done)/float64(all)) }

// PartText returns Part in percent. Only 0 has 0%, and only all has 100%.
func PartText(done, all int64) string {
	percent := Part(done, all) * 100
	switch {
	case done == 0:
		return "0%"
	case done >= all:
		return "100%"
	case percent < 0.1:
		return "<0.1%"
	case percent > 99.9:
		return ">99.9%"
	}
	return fmt.Sprintf("%.1f%%", percent)
}

// Sequences counts named sequences, and those that need an operator.
type Sequences struct {
	// Count is the number of sequences, and Templates that of the templates. Deleted ones do not count.
	Count     int `json:"count"`
	Templates int `json:"templates"`
	// Frozen and Exhausted issue no values, or create no sequences. NearlyUsed are those of the
	// others of which at least 80 % are used.
	Frozen     SomeSequences `json:"frozen"`
	Exhausted  SomeSequences `json:"exhausted"`
	NearlyUsed SomeSequences `json:"nearly_used"`
}

// SomeSequences are the sequences with one problem.
type SomeSequences struct {
	Count int `json:"count"`
	// Names are the first of them.
	Names []string `json:"names"`
}

// NewSequences returns counts of no sequences.
func NewSequences() *Sequences {
	none := SomeSequences{Names: []string{}}
	return &Sequences{Frozen: none, Exhausted: none, NearlyUsed: none}
}

// CountSequences counts the sequences that ZooKeeper has. It returns nil if there are none.
func CountSequences(found []seq.Named, st seq.State) *Sequences {
	s := NewSequences()
	for _, n := range found {
		s.Add(n.Name, n.Record, SequenceState(n.Record, st))
	}
	if s.Count+s.Templates == 0 {
		return nil
	}
	return s
}

// Add counts one sequence.
func (s *Sequences) Add(name string, r seq.Record, state string) {
	switch {
	case state == SeqDeleted:
		return
	case r.Kind() == seq.Template:
		s.Templates++
	default:
		s.Count++
	}
	switch {
	case state == SeqFrozen:
		s.Frozen.add(name)
	case state == SeqExhausted:
		s.Exhausted.add(name)
	case Part(Taken(r)) >= NearlyUsed:
		s.NearlyUsed.add(name)
	}
}

func (s *SomeSequences) add(name string) {
	if s.Count++; len(s.Names) < mostListed {
		s.Names = append(s.Names, Clean(name))
	}
}

// Line returns the counts and the problems in one line.
func (s Sequences) Line() string {
	line := Plural(int64(s.Count), "named sequence")
	if s.Templates > 0 {
		line += ", " + Plural(int64(s.Templates), "template")
	}
	for _, p := range s.Problems() {
		line += ". " + p.Text
	}
	return line
}

// Plural returns a number with thousands separated, and a noun in singular or plural.
func Plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Thousands(fmt.Sprint(n)) + " " + noun
}

// Problems returns the sequences of which clients get no values, or soon none.
func (s Sequences) Problems() (out []Problem) {
	add := func(some SomeSequences, p Problem) {
		if some.Count > 0 {
			p.Advice = strings.Replace(p.Advice, "NAME", some.Names[0], 1)
			out = append(out, p.With(": "+Listed(some.Names, some.Count)))
		}
	}
	add(s.Frozen, sequencesFrozen)
	add(s.Exhausted, sequencesExhausted)
	add(s.NearlyUsed, sequencesNearlyUsed)
	return out
}
