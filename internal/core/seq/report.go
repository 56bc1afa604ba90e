package seq

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// Report is the report of a node on its sequences at one moment, for people and for metrics.
type Report struct {
	// Sequences are those that exist, as far as the node knows, without templates. They are in no order.
	Sequences []mode.Use
	// FrozenTemplates is the number of templates that create nothing until an operator confirms them.
	FrozenTemplates int
	// State is that of Issuer.State.
	State record.State
	// Changes is the number of changes that the node has followed: see State. It is 0 if the node has not read /seq in
	// this session.
	Changes int64
	// ReadAgo is the time since the node last knew all changes. It is negative if it never did.
	ReadAgo time.Duration
	// Issued is the number of values that the process has issued, Blocks that of the blocks that it has taken, and
	// Waits that of the requests that waited.
	Issued, Blocks, Waits int64
	// Refused is the number of requests that this node refused, by reason. It has all reasons. Requests that were
	// forwarded and that the owner refused are not among them.
	Refused map[record.Reason]int64
}

// Report returns what the node knows now. It may be called by any goroutine.
func (i *Issuer) Report() Report {
	now := i.now()
	r := Report{Changes: i.Followed().Last.Number, State: i.State(), ReadAgo: -1, Refused: make(map[record.Reason]int64)}
	if p := i.progress.Load(); p.knewAllAt != longAgoNs {
		r.ReadAgo = time.Duration(now - p.knewAllAt)
	}
	all, sum := i.series.counted()
	for _, s := range all {
		s.Mu.Lock()
		sum.Add(s.Totals)
		switch s.Known.Kind() {
		case record.Sequence:
			r.Sequences = append(r.Sequences, s.use(now))
		case record.Template:
			if s.Known.Incarnation < r.State.Incarnation {
				r.FrozenTemplates++
			}
		}
		s.Mu.Unlock()
	}
	r.Issued, r.Blocks, r.Waits = sum.Issued, sum.Blocks, sum.Waits
	for k, reason := range record.Reasons {
		r.Refused[reason] = i.refused[k].Load()
	}
	return r
}

// State returns /seq as it was when the node last knew all changes and its witness file had them. If the disk hangs,
// that is older than what the node knows. State returns the zero State before. It may be called by any goroutine.
func (i *Issuer) State() (st record.State) {
	if p := i.progress.Load(); p.saved != nil {
		st = p.saved.state
	}
	return st
}

// Use returns what the node knows of a sequence, or of the section that issues the values of a name of a family. ok is
// false if it knows none of this name. It may be called by any goroutine.
func (i *Issuer) Use(name string) (u mode.Use, ok bool) {
	if f := i.families.of([]byte(name)); f != nil {
		k, _ := f.sectionAndLane([]byte(name))
		name = f.section(k)
	}
	s := i.series.find(name)
	if s == nil {
		return u, false
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Known.Kind() != record.Sequence {
		return u, false
	}
	return s.use(i.now()), true
}

// use returns what is known of the series. Mu is held.
func (s *series) use(now int64) mode.Use {
	u := mode.Use{Name: s.Name, Record: *s.Known, PerSecond: s.PerSecond(now)}
	s.Issuing.Report(&u)
	if !s.MayTry(now) || len(s.Waiting) > 0 {
		u.Refusal = s.Refusal().Why()
	}
	return u
}

// Show returns a line that describes a sequence, and sequence.ErrPending or a *record.Refusal as Take does.
func (i *Issuer) Show(w *sequence.Wait, name []byte, wake func()) (string, error) {
	for {
		s, _, err := i.series.serving(name)
		if err != nil {
			return "", err
		}
		line, err := s.show(mode.Request{Wait: w, Wake: wake, Name: name}, i.now())
		if f := i.families.of(name); f != nil && err == nil {
			k, _ := f.sectionAndLane(name)
			line += fmt.Sprintf(" family=%s section=%d sections=%d", f.name, k, f.count())
		}
		if err == errForgotten {
			i.series.replace(s)
			continue
		}
		if err == sequence.ErrPending {
			i.alarms.wakeAt(s, mode.AtOnce)
		}
		return line, err
	}
}

// show returns the line of SEQ, or makes the request wait.
func (s *series) show(r mode.Request, now int64) (line string, err error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	case s.forgotten.Load():
		return "", errForgotten
	case s.Known.Kind() == record.Sequence:
		return s.describe(string(r.Name)), nil
	case s.Known != nil, s.absent(now):
		return "", noSequence(s.Name)
	}
	_, _, err = s.WaitOrRefuse(r, now, nil)
	return "", err
}

// List returns a line for each sequence that this node knows, whose name begins with prefix, and that rights include.
func (i *Issuer) List(prefix []byte, rights *sequence.Rights) (lines []string) {
	for _, s := range i.series.list() {
		if !rights.MayUse([]byte(s.Name)) {
			continue
		}
		s.Mu.Lock()
		if s.Known.Kind() == record.Sequence && strings.HasPrefix(s.Name, string(prefix)) {
			lines = append(lines, s.describe(s.Name))
		}
		s.Mu.Unlock()
	}
	slices.Sort(lines)
	return lines
}

// describe returns the line of SEQ. Mu is held.
func (s *series) describe(name string) string {
	r := s.Known
	return fmt.Sprintf("name=%s mode=%s start=%d increment=%d max=%d used_percent=%.1f taken=%d salt=%d scatter=%d %s",
		name, r.Mode, r.Start, r.Increment, r.Max, 100*r.Used(r.Next), max(r.Next, s.highest), r.Salt,
		r.Scatter, s.Issuing.Report(new(mode.Use)))
}
