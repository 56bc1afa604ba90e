package web

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// leafGet and leafDecode answer as Leaf's server does (Meituan-Dianping/Leaf, LeafController and
// LeafMonitorController), errors included.
func (s *Server) leafGet(w http.ResponseWriter, r *http.Request) {
	ids, err := s.make(r.Context(), 1)
	if err != nil {
		leafError(w, r, err)
		return
	}
	_, _ = io.WriteString(w, ids[0].String())
}

// leafError answers with the document that Spring makes of Leaf's exception.
func leafError(w http.ResponseWriter, r *http.Request, err error) {
	writeJSON(w, http.StatusInternalServerError, map[string]any{
		"timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000-07:00"), "status": http.StatusInternalServerError,
		"error": "Internal Server Error", "message": replies.OneLine(err.Error()), "path": r.URL.Path,
	})
}

func (s *Server) leafDecode(w http.ResponseWriter, r *http.Request) {
	text := r.FormValue("snowflakeId")
	if text == "" {
		writeError(w, replies.New(ids.ERR, "snowflakeId is missing. Add ?snowflakeId=ID"))
		return
	}
	d, err := s.decodeID(text)
	if err != nil {
		var e *ids.ReplyError
		if !errors.As(err, &e) || e.Code != ids.ERR {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, map[string]string{"errorMsg": replies.OneLine(e.Text)})
		return
	}
	at := time.UnixMilli(d.TimestampMs).UTC() // Leaf uses its server's zone
	writeJSON(w, http.StatusOK, map[string]string{
		"timestamp":  strconv.FormatInt(d.TimestampMs, 10) + "(" + at.Format("2006-01-02 15:04:05.000") + ")",
		"workerId":   strconv.FormatInt(d.Worker, 10),
		"sequenceId": strconv.FormatInt(d.Sequence, 10),
	})
}

// leafSegment answers as Leaf's segment mode does.
func (s *Server) leafSegment(w http.ResponseWriter, r *http.Request) {
	runs, err := s.take(r, r.PathValue("key"), 1, false)
	if err != nil {
		leafError(w, r, err)
		return
	}
	_, _ = io.WriteString(w, runs[0].First.String())
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
	found := s.reportsFor(r)
	for _, u := range found {
		c := leafCache{InitOK: true, Key: u.Name}
		if u.LastBlock.Len() > 0 && !u.Record.Keyed() { // the next value of a salted or scattered sequence is secret
			c.Step0, c.Max0 = u.LastBlock.Len(), u.Record.Value(u.LastBlock.End-1)+u.Record.Increment
			c.Value0 = c.Max0 - min(u.Held, u.LastBlock.Len())*u.Record.Increment
		}
		all = append(all, c)
	}
	writeJSON(w, http.StatusOK, all)
}
