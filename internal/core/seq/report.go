package seq

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// Report is what a node knows of its sequences at one moment, for people and for metrics.
type Report struct {
	// Sequences are those that exist, as far as the node knows, without templates. They are in no order.
	Sequences []Use
	// FrozenTemplates is the number of templates that create nothing until an operator confirms them.
	FrozenTemplates int
	// State is /seq as it was when the node last knew all changes.
	State record.State
	// Changes is the number of changes that the node has followed: see State. It is 0 if the node has not read /seq in
	// this session.
	Changes int64
	// ReadAgo is the time since the node last knew all changes. It is negative if it never did.
	ReadAgo time.Duration
	// Issued is the number of values that the process has issued, Blocks that of the blocks that it has taken, and
	// Waits that of the requests that waited for ZooKeeper.
	Issued, Blocks, Waits int64
	// Refused is the number of requests that this node refused, by reason. It has all reasons. Requests that were
	// passed on and that the owner refused are not among them.
	Refused map[record.Reason]int64
}

// Report returns what the node knows now. It may be called by any goroutine.
func (i *Issuer) Report() Report {
	now := i.now()
	r := Report{Changes: i.Followed().Last.Number, ReadAgo: -1, Refused: make(map[record.Reason]int64)}
	p := i.progress.Load()
	if p.saved != nil {
		r.State = p.saved.state
	}
	if p.knewAllAt != longAgoNs {
		r.ReadAgo = time.Duration(now - p.knewAllAt)
	}
	all, sum := i.counted()
	for _, s := range all {
		s.mu.Lock()
		sum.add(s.totals)
		switch s.known.Kind() {
		case record.Sequence:
			r.Sequences = append(r.Sequences, s.use(now))
		case record.Template:
			if s.known.Incarnation < r.State.Incarnation {
				r.FrozenTemplates++
			}
		}
		s.mu.Unlock()
	}
	r.Issued, r.Blocks, r.Waits = sum.issued, sum.blocks, sum.waits
	for k, reason := range record.Reasons {
		r.Refused[reason] = i.refused[k].Load()
	}
	return r
}

// Use returns what the node knows of a sequence, or of the section that issues the values of a name of a family. ok is
// false if it knows none of this name. It may be called by any goroutine.
func (i *Issuer) Use(name string) (u Use, ok bool) {
	if f := i.families.of([]byte(name)); f != nil {
		k, _ := positions.Place(name, len(f.sections))
		name = record.SectionName(f.name, k)
	}
	s := i.find([]byte(name))
	if s == nil {
		return u, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.Kind() != record.Sequence {
		return u, false
	}
	return s.use(i.now()), true
}

// use returns what is known of the series. mu is held.
func (s *series) use(now int64) Use {
	u := Use{Name: s.name, Record: *s.known, PerSecond: s.window.rate(s.issued, now)}
	s.mode.report(&u)
	if now < s.retryAt || len(s.waiting) > 0 {
		u.Refusal = s.refusal.Why()
	}
	return u
}

// count counts a refusal.
func (i *Issuer) count(err error) {
	r, ok := err.(*record.Refusal)
	for k, reason := range record.Reasons {
		if ok && r.Reason == reason {
			i.refused[k].Add(1)
		}
	}
}

// Show returns a line that describes a sequence, and sequence.ErrPending or a *Refusal as Take does.
func (i *Issuer) Show(w *sequence.Wait, name []byte, wake func()) (string, error) {
	for {
		s, _, err := i.seriesOf(name)
		if err != nil {
			return "", err
		}
		line, err := s.show(request{w: w, wake: wake, name: name}, i.now())
		if f := i.families.of(name); f != nil && err == nil {
			k, _ := positions.Place(name, len(f.sections))
			line += fmt.Sprintf(" family=%s section=%d sections=%d", f.name, k, len(f.sections))
		}
		if err == errForgotten {
			continue
		}
		if err == sequence.ErrPending {
			i.wakeAt(s, soon)
		}
		return line, err
	}
}

// show returns the line of SEQ, or makes the request wait.
func (s *series) show(r request, now int64) (line string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.forgotten.Load():
		return "", errForgotten
	case s.known.Kind() == record.Sequence:
		return s.describe(string(r.name)), nil
	case s.known != nil, s.absent(now):
		return "", noSequence(s.name)
	}
	_, _, err = s.wait(r, now, nil)
	return "", err
}

// List returns a line for each sequence that this node knows, whose name begins with prefix, and that rights include.
func (i *Issuer) List(prefix []byte, rights *sequence.Rights) (lines []string) {
	for _, s := range i.list() {
		if !rights.MayUse([]byte(s.name)) {
			continue
		}
		s.mu.Lock()
		if s.known.Kind() == record.Sequence && strings.HasPrefix(s.name, string(prefix)) {
			lines = append(lines, s.describe(s.name))
		}
		s.mu.Unlock()
	}
	slices.Sort(lines)
	return lines
}

// describe returns the line of SEQ. mu is held.
func (s *series) describe(name string) string {
	r := s.known
	return fmt.Sprintf("name=%s mode=%s start=%d increment=%d max=%d used_percent=%.1f taken=%d map=%s %s",
		name, r.Mode, r.Start, r.Increment, r.Max, 100*r.Used(r.Next), max(r.Next, s.highest), r.MapName(),
		s.mode.report(new(Use)))
}
