package admin

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/flaked/flaked/ids"
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
		"error": "Internal Server Error", "message": oneLine(err.Error()), "path": r.URL.Path,
	})
}

func (s *Server) leafDecode(w http.ResponseWriter, r *http.Request) {
	text := r.FormValue("snowflakeId")
	if text == "" {
		writeError(w, ids.Reply(ids.ERR, "snowflakeId is missing. Add ?snowflakeId=ID"))
		return
	}
	d, err := s.decodeID(text)
	if err != nil {
		var e *ids.ReplyError
		if !errors.As(err, &e) || e.Code != ids.ERR {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, map[string]string{"errorMsg": oneLine(e.Text)})
		return
	}
	at := time.UnixMilli(d.TimestampMs).UTC() // Leaf uses its server's zone
	writeJSON(w, http.StatusOK, map[string]string{
		"timestamp":  strconv.FormatInt(d.TimestampMs, 10) + "(" + at.Format("2006-01-02 15:04:05.000") + ")",
		"workerId":   strconv.FormatInt(d.Worker, 10),
		"sequenceId": strconv.FormatInt(d.Sequence, 10),
	})
}
