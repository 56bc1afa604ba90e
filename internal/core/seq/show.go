package seq

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/sequence"
)

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
	case s.known.Kind() == Sequence:
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
		if s.known.Kind() == Sequence && strings.HasPrefix(s.name, string(prefix)) {
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
