package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

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

// tinyid answers a route of tinyid's server. get returns the data, and the text of the route that ends with
// Simple. That one answers an error with nothing.
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
			writeJSON(w, http.StatusOK, tinyidAnswer{nil, tinyidSystem, replies.OneLine(err.Error())})
		default:
			writeJSON(w, http.StatusOK, tinyidAnswer{data, tinyidSuccess, ""})
		}
	}
}

// errTinyidToken is answered for a wrong token, one that does not include the sequence, and for a missing bizType.
var errTinyidToken = errors.New("token is error")

// tinyidAdmit is admit for a request of tinyid's client, which has the token among the parameters. If the token
// is wrong, the request gets no rights. It returns nil after it has answered.
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

// tinyidBlockOf returns the number of values in a block of a sequence: a quarter of its ceiling's burst at
// most, so that other clients find some, and no more than are left.
func tinyidBlockOf(u mode.Use) int {
	r := u.Record
	left := max(r.Positions()-r.Next, u.Held)
	return int(max(1, min(max(minTinyidBlock, r.Block), maxRange,
		positions.Ceiling(min(r.Ceiling, r.HardCeiling)).Burst()/4, left)))
}

func (s *Server) tinyidBlock(r *http.Request) (data any, text string, err error) {
	name := r.FormValue("bizType")
	u, err := s.use(r, name)
	if err == nil && u.Record.Mode.Rises() {
		err = fmt.Errorf("%s is a %s sequence, so clients must not hold blocks of it. Use nextId", name, u.Record.Mode)
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
		MaxID: int64(run.At(run.Len - 1)), CurrentID: current, LoadingID: current + int64(run.Len/5)*step,
		Delta: step, Remainder: first % step,
	}, nil
}
