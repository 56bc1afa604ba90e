package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// maxRange is the most values of one range, as on the wire.
const maxRange = 1_000_000

// Issuer issues the values of named sequences.
type Issuer interface {
	lineproto.Sequences
	// Use returns what the node knows of a sequence, and false if it knows none of this name.
	Use(name string) (mode.Use, bool)
	// State returns the state of all sequences, as far as the node has read it.
	State() record.State
	// Report returns what the node knows of all sequences. It must not block.
	Report() seq.Report
}

// until calls try until it has an answer, whenever the sequence has news. If the client goes first, the values
// are lost.
func (s *Server) until(r *http.Request, name string, try func(w *sequence.Wait, wake func()) error) error {
	if err := mayUse(r, name); err != nil {
		return err
	}
	ctx := &deadline{Context: r.Context()}
	defer ctx.end()
	wait := new(sequence.Wait) // the sequence may keep it for longer than this request
	woken := make(chan struct{}, 1)
	for {
		err := try(wait, func() { woken <- struct{}{} })
		if !errors.Is(err, sequence.ErrPending) {
			return err
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return replies.New(ids.NOTREADY,
				"reason=unknown ZooKeeper did not answer in time, so values may be missing. Retry, or try another node")
		}
	}
}

// take returns n values of a sequence, or an error and none. whole means that they follow each other.
func (s *Server) take(r *http.Request, name string, n int, whole bool) (runs []worker.Run, err error) {
	err = s.until(r, name, func(w *sequence.Wait, wake func()) (err error) {
		runs, err = s.cfg.Issuer.Take(w, []byte(name), n, whole, wake, nil)
		return err
	})
	return runs, err
}

// use returns what the node knows of a sequence. A name that it has not seen is looked up.
func (s *Server) use(r *http.Request, name string) (u mode.Use, err error) {
	err = s.until(r, name, func(w *sequence.Wait, wake func()) error {
		_, err := s.cfg.Issuer.Show(w, []byte(name), wake)
		return err
	})
	if err != nil {
		return u, err
	}
	u, ok := s.cfg.Issuer.Use(name)
	if !ok {
		err = noSequence(name, "")
	}
	return u, err
}

// noSequence returns the error for an unknown sequence. advice is a sentence behind a full stop, or empty.
func noSequence(name, advice string) error {
	return &record.Refusal{Reason: record.NoSequence, Text: "there is no sequence " + name + advice}
}

// valuesOf returns all values of runs.
func valuesOf(runs []worker.Run) (all []worker.ID) {
	for _, r := range runs {
		for k := range r.Len {
			all = append(all, r.At(k))
		}
	}
	return all
}

// listSequences lists the sequences that the node knows.
func (s *Server) listSequences(w http.ResponseWriter, r *http.Request) {
	prefix := r.URL.Query().Get("prefix")
	all := []health.SequenceReport{}
	for _, d := range s.reportsFor(r) {
		if strings.HasPrefix(d.Name, prefix) {
			all = append(all, d)
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"sequences": all})
}

// sequence shows one sequence, or takes values of it.
func (s *Server) sequence(w http.ResponseWriter, r *http.Request) {
	path := r.PathValue("name")
	if r.Method != http.MethodPost {
		s.showOne(w, r, path)
		return
	}
	at := strings.LastIndexByte(path, '/')
	if !takesValues(path) {
		writeError(w, replies.New(ids.ERR, "POST /v1/sequences/NAME/next or /v1/sequences/NAME/range takes values"))
		return
	}
	s.takeValues(w, r, path[:at], path[at:] == "/range")
}

// takesValues reports whether a path below /v1/sequences/ is one that takes values when it is posted to.
func takesValues(path string) bool {
	return strings.HasSuffix(path, "/next") || strings.HasSuffix(path, "/range")
}

func (s *Server) showOne(w http.ResponseWriter, r *http.Request, name string) {
	u, err := s.use(r, name)
	if refusal, is := errors.AsType[*record.Refusal](err); is && refusal.Reason == record.NoSequence && takesValues(name) {
		err = noSequence(name, ". To take values, send POST, not GET")
	}
	if err != nil {
		writeSequenceError(w, err)
		return
	}
	shown := health.NodeReport(u, s.cfg.Issuer.State())
	shown.Name = name // that of the section that issues its values is in family and section
	writeJSON(w, http.StatusOK, shown)
}

func (s *Server) takeValues(w http.ResponseWriter, r *http.Request, name string, whole bool) {
	most := lineproto.MaxBatch
	if whole {
		most = maxRange
	}
	n, err := count(r.FormValue("n"), most)
	if err != nil {
		writeError(w, err)
		return
	}
	runs, err := s.take(r, name, n, whole)
	if err != nil {
		writeSequenceError(w, err)
		return
	}
	if !whole {
		writeJSON(w, http.StatusOK, map[string]any{"name": name, "values": valuesOf(runs)})
		return
	}
	last := runs[len(runs)-1]
	writeJSON(w, http.StatusOK, map[string]any{"name": name, "first": runs[0].First, "last": last.At(last.Len - 1),
		"increment": runs[0].Step, "n": n})
}

// count parses the number of values that a request asks for: digits alone, as on the wire. Empty means 1.
func count(text string, most int) (int, error) {
	if text == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most || text[0] == '0' || text[0] == '+' {
		return 0, replies.New(ids.ERR, fmt.Sprintf("n must be 1 to %d, digits only", most))
	}
	return n, nil
}

// writeSequenceError is writeError, but an unknown name is answered with 404, and a sequence for which an operator must
// act with 409.
func writeSequenceError(w http.ResponseWriter, err error) {
	e := replies.Of(err)
	switch record.Reason(e.Reason()) {
	case record.NoSequence:
		writeProblem(w, http.StatusNotFound, e)
	case record.Frozen:
		writeProblem(w, http.StatusConflict, e)
	default:
		writeError(w, e)
	}
}

// reportsFor returns the sequences that a request may use. The sections of a family are one.
func (s *Server) reportsFor(r *http.Request) []health.SequenceReport {
	report := s.cfg.Issuer.Report()
	report.Sequences = slices.DeleteFunc(report.Sequences, func(u mode.Use) bool { return mayUse(r, u.Name) != nil })
	all := sequencesOf(report)
	slices.SortFunc(all, func(a, b health.SequenceReport) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
