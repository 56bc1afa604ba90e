package admin

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/flaked/flaked/lineproto"
)

// leafRoutes are those of Leaf's own server (Meituan-Dianping/Leaf,
// LeafController and LeafMonitorController), which take any method and answer as
// it does, errors too.
func (s *Server) leafRoutes() []route {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	return []route{
		{path: "/api/snowflake/get/{key}", about: "an ID, as Leaf's server gives it; any key", methods: methods, serve: s.leafGet},
		{path: "/decodeSnowflakeId", about: "?snowflakeId=ID taken apart, as by Leaf's server", methods: methods, serve: s.leafDecode},
	}
}

func (s *Server) leafGet(w http.ResponseWriter, r *http.Request) {
	ids, err := s.make(r.Context(), 1)
	if err != nil {
		// What Spring makes of Leaf's exception.
		writeJSON(w, http.StatusInternalServerError, map[string]any{
			"timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000-07:00"), "status": http.StatusInternalServerError,
			"error": "Internal Server Error", "message": oneLine(err.Error()), "path": r.URL.Path,
		})
		return
	}
	_, _ = io.WriteString(w, ids[0].String())
}

func (s *Server) leafDecode(w http.ResponseWriter, r *http.Request) {
	text := r.FormValue("snowflakeId")
	if text == "" {
		writeError(w, &lineproto.Error{Code: lineproto.ERR, Text: "snowflakeId=ID is missing"})
		return
	}
	d, err := s.decodeID(text)
	if err != nil {
		var e *lineproto.Error
		if !errors.As(err, &e) || e.Code != lineproto.ERR {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, map[string]string{"errorMsg": oneLine(e.Text)})
		return
	}
	at := time.UnixMilli(d.TimestampMs).UTC() // Leaf's is its server's zone
	writeJSON(w, http.StatusOK, map[string]string{
		"timestamp":  strconv.FormatInt(d.TimestampMs, 10) + "(" + at.Format("2006-01-02 15:04:05.000") + ")",
		"workerId":   strconv.FormatInt(d.Worker, 10),
		"sequenceId": strconv.FormatInt(d.Sequence, 10),
	})
}
