package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq"
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
	Use(name string) (seq.Use, bool)
}

// until calls try until it has an answer, whenever the sequence has news. If the client goes first, the values are lost.
func (s *Server) until(r *http.Request, name string, try func(w *sequence.Wait, wake func()) error) error {
	if err := mayUse(r, name); err != nil {
		return err
	}
	if s.cfg.Issuer == nil {
		return ids.ErrNoSequences
	}
	ctx, cancel := context.WithTimeout(r.Context(), reserveTimeout)
	defer cancel()
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
			return ids.Reply(ids.NOTREADY,
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
func (s *Server) use(r *http.Request, name string) (u seq.Use, err error) {
	err = s.until(r, name, func(w *sequence.Wait, wake func()) error {
		_, err := s.cfg.Issuer.Show(w, []byte(name), wake)
		return err
	})
	if err != nil {
		return u, err
	}
	u, ok := s.cfg.Issuer.Use(name)
	if !ok {
		err = ids.Reply(ids.ERR, "reason=no-sequence there is no sequence "+name)
	}
	return u, err
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

// shownSequence is the JSON document of a sequence.
type shownSequence struct {
	Name      string    `json:"name"`
	Mode      string    `json:"mode"`
	Start     worker.ID `json:"start"`
	Increment int64     `json:"increment"`
	Max       worker.ID `json:"max"`
	// Taken is the number of values that nodes have taken, and UsedPercent the part of all values that is, to a tenth.
	Taken       int64   `json:"taken"`
	UsedPercent float64 `json:"used_percent"`
	// Held is the number of values that this node has taken and not issued.
	Held int64 `json:"held"`
	// Refusal is the reason for which this node gets no values now, left out if there is none.
	Refusal string `json:"refusal,omitempty"`
}

func showSequence(u seq.Use) shownSequence {
	r := u.Record
	return shownSequence{u.Name, r.Mode.String(), worker.ID(r.Start), r.Increment, worker.ID(r.Max), r.Next, math.Round(1000*r.Used(r.Next)) / 10, u.Held, string(u.Refusal)}
}

// listSequences lists the sequences that the node knows.
func (s *Server) listSequences(w http.ResponseWriter, r *http.Request) {
	prefix := r.URL.Query().Get("prefix")
	all := []shownSequence{}
	for _, u := range s.usesOf(r) {
		if strings.HasPrefix(u.Name, prefix) {
			all = append(all, showSequence(u))
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
	if at < 0 || path[at:] != "/next" && path[at:] != "/range" {
		writeError(w, ids.Reply(ids.ERR, "POST /v1/sequences/NAME/next or /v1/sequences/NAME/range takes values"))
		return
	}
	s.takeValues(w, r, path[:at], path[at:] == "/range")
}

func (s *Server) showOne(w http.ResponseWriter, r *http.Request, name string) {
	u, err := s.use(r, name)
	if err != nil {
		writeSequenceError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, showSequence(u))
}

func (s *Server) takeValues(w http.ResponseWriter, r *http.Request, name string, whole bool) {
	most := s.cfg.MaxBatch
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
	writeJSON(w, http.StatusOK, map[string]any{"name": name, "first": runs[0].First, "last": last.At(last.Len - 1), "increment": int64(runs[0].Step), "n": n})
}

// count parses the number of values that a request asks for: digits alone, as on the wire. Empty means 1.
func count(text string, most int) (int, error) {
	if text == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most || text[0] == '0' || text[0] == '+' {
		return 0, ids.Reply(ids.ERR, fmt.Sprintf("n must be 1 to %d, digits only", most))
	}
	return n, nil
}

// writeSequenceError is writeError, but an unknown name is answered with 404, and a sequence for which an operator must
// act with 409.
func writeSequenceError(w http.ResponseWriter, err error) {
	var e *ids.ReplyError
	if errors.As(err, &e) {
		reason, _, _ := strings.Cut(strings.TrimPrefix(e.Text, "reason="), " ")
		status := map[seq.Reason]int{
			seq.NoSequence: http.StatusNotFound, seq.Frozen: http.StatusConflict,
		}[seq.Reason(reason)]
		if status != 0 {
			writeJSON(w, status, problem{problemText{string(e.Code), oneLine(e.Text)}})
			return
		}
	}
	writeError(w, err)
}

// leafSegment answers as Leaf's segment mode does.
func (s *Server) leafSegment(w http.ResponseWriter, r *http.Request) {
	runs, err := s.take(r, r.PathValue("key"), 1, false)
	if err != nil {
		leafError(w, r, err)
		return
	}
	fmt.Fprint(w, int64(runs[0].First))
}

// leafCache is one row of Leaf's page /cache, as JSON: flaked has the first of Leaf's two buffers alone.
type leafCache struct {
	InitOK    bool   `json:"initOk"`
	Key       string `json:"key"`
	Pos       int    `json:"pos"`
	NextReady bool   `json:"nextReady"`
	Max0      int64  `json:"max0"`
	Value0    int64  `json:"value0"`
	Step0     int64  `json:"step0"`
	Max1      int64  `json:"max1"`
	Value1    int64  `json:"value1"`
	Step1     int64  `json:"step1"`
}

func (s *Server) leafCaches(w http.ResponseWriter, r *http.Request) {
	all := []leafCache{}
	for _, u := range s.usesOf(r) {
		c := leafCache{InitOK: true, Key: u.Name}
		if u.Block.Len() > 0 && !u.Record.Keyed() { // the next value of a salted or scattered sequence is secret
			c.Step0, c.Max0 = u.Block.Len(), u.Record.Value(u.Block.End-1)+u.Record.Increment
			c.Value0 = c.Max0 - min(u.Held, u.Block.Len())*u.Record.Increment
		}
		all = append(all, c)
	}
	writeJSON(w, http.StatusOK, all)
}

// usesOf returns the sequences that a request may use.
func (s *Server) usesOf(r *http.Request) []seq.Use {
	return slices.DeleteFunc(s.cfg.Sequences().Sequences, func(u seq.Use) bool { return mayUse(r, u.Name) != nil })
}

// The codes of tinyid's answers.
const (
	tinyidSuccess    = 200
	tinyidTokenError = 5
	tinyidSystem     = 6
)

// tinyidAnswer is the JSON document of tinyid's server.
type tinyidAnswer struct {
	Data    any    `json:"data"`
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// tinyidMaxBatch is the greatest batchSize of tinyid's server. A greater one counts as this.
const tinyidMaxBatch = 100_000

// tinyid answers a route of tinyid's server. get returns the data, and the text of the route that ends with Simple. That
// one answers an error with nothing.
func (s *Server) tinyid(simple bool, get func(r *http.Request) (data any, text string, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r = s.tinyidAdmit(w, r); r == nil {
			return
		}
		data, text, err := any(nil), "", errTinyidToken
		if r.FormValue("bizType") != "" && mayUse(r, r.FormValue("bizType")) == nil {
			data, text, err = get(r)
		}
		switch {
		case err == nil && simple:
			fmt.Fprint(w, text)
		case simple:
		case err == errTinyidToken:
			writeJSON(w, http.StatusOK, tinyidAnswer{nil, tinyidTokenError, err.Error()})
		case err != nil:
			writeJSON(w, http.StatusOK, tinyidAnswer{nil, tinyidSystem, oneLine(err.Error())})
		default:
			writeJSON(w, http.StatusOK, tinyidAnswer{data, tinyidSuccess, ""})
		}
	}
}

// errTinyidToken is answered for a wrong token, one that does not include the sequence, and for a missing bizType.
var errTinyidToken = errors.New("token is error")

// tinyidAdmit is admit for a request of tinyid's client, which has the token among the parameters. If the token is wrong,
// the request gets no rights. It returns nil after it has answered.
func (s *Server) tinyidAdmit(w http.ResponseWriter, r *http.Request) *http.Request {
	if s.cfg.Authenticate == nil || fromAnotherSite(r) || !s.certified(r) {
		return s.admit(w, r, false)
	}
	rights, ok := s.cfg.Authenticate([]byte(r.FormValue("token")))
	if !ok {
		rights = new(sequence.Rights)
	}
	return withRights(r, rights)
}

func (s *Server) tinyidNext(r *http.Request) (data any, text string, err error) {
	n := 1
	if given := r.FormValue("batchSize"); given != "" {
		if n, err = strconv.Atoi(given); err != nil || n < 1 {
			return nil, "", errors.New("batchSize must be a number of 1 or more")
		}
	}
	runs, err := s.take(r, r.FormValue("bizType"), min(n, tinyidMaxBatch), false)
	if err != nil {
		return nil, "", err
	}
	var numbers []json.Number // tinyid's values are numbers, not strings
	var words []string
	for _, v := range valuesOf(runs) {
		numbers, words = append(numbers, json.Number(v.String())), append(words, v.String())
	}
	return numbers, strings.Join(words, ","), nil
}

// tinyidSegment is a block for tinyid's client, which issues the values above CurrentID up to MaxID by itself: those
// that leave Remainder when they are divided by Delta. From LoadingID on it asks for another block.
type tinyidSegment struct {
	MaxID     int64 `json:"maxId"`
	LoadingID int64 `json:"loadingId"`
	CurrentID int64 `json:"currentId"`
	Delta     int64 `json:"delta"`
	Remainder int64 `json:"remainder"`
}

// minTinyidBlock is the number of values in a block for tinyid's client. A larger block of the sequence counts instead,
// as tinyid has a step for each table row.
const minTinyidBlock = 1000

// tinyidBlockOf returns the number of values in a block of a sequence: a quarter of its ceiling's burst at most, so that
// other clients find some, and no more than are left.
func tinyidBlockOf(u seq.Use) int {
	r := u.Record
	left := max(r.Positions()-r.Next, u.Held)
	return int(max(1, min(max(minTinyidBlock, r.Block), maxRange, sequence.Ceiling(min(r.Ceiling, r.HardCeiling)).Burst()/4, left)))
}

func (s *Server) tinyidBlock(r *http.Request) (data any, text string, err error) {
	name := r.FormValue("bizType")
	u, err := s.use(r, name)
	if err == nil && u.Record.Mode == seq.Strict {
		err = fmt.Errorf("%s is a strict sequence, so clients must not hold blocks of it. Use nextId", name)
	}
	if err != nil {
		return nil, "", err
	}
	runs, err := s.take(r, name, tinyidBlockOf(u), true)
	var e *ids.ReplyError
	if errors.As(err, &e) && e.Code == ids.EXHAUSTED {
		runs, err = s.take(r, name, 1, true) // the last values, or the same error
	}
	if err != nil {
		return nil, "", err
	}
	seg, err := segmentOf(runs[0])
	text = fmt.Sprintf("%d,%d,%d,%d,%d", seg.CurrentID, seg.LoadingID, seg.MaxID, seg.Delta, seg.Remainder)
	return seg, text, err
}

// segmentOf returns the block of a run. tinyid's client asks for the next one when a fifth is used.
func segmentOf(run worker.Run) (tinyidSegment, error) {
	first, step := int64(run.First), int64(run.Step)
	if step > 1<<31-1 {
		return tinyidSegment{}, errors.New("the increment of the sequence is too large for tinyid's client")
	}
	current := first - step
	return tinyidSegment{
		MaxID: int64(run.At(run.Len - 1)), CurrentID: current, LoadingID: current + int64(run.Len/5)*step, Delta: step, Remainder: first % step,
	}, nil
}
