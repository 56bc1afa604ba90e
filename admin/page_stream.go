package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// liveEvery is how often a page is looked over when nothing happens: a little
	// less often than the slots are read, which does happen.
	liveEvery = 1250 * time.Millisecond
	// liveWrite is how long a reader may take over what it is sent, after which
	// it is given up on: it will come again.
	liveWrite = 5 * time.Second
)

// live sends the parts of a page as they change, as server-sent events, until
// the reader goes or is too slow, or the server ends.
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	leave := s.pages.streams.take(r.Context(), connOf(r.Context()).from)
	if leave == nil {
		all, one := s.pages.streams.limits()
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "this node keeps %d pages current at once, %d from one address: close one\n", all, one)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	conn := http.NewResponseController(w)
	// This takes longer than a request may. A deadline of reading would count as
	// a reader who has gone.
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		s.log.Debug("a page cannot be kept current", "error", err)
		return
	}
	send := func(event string) bool {
		if conn.SetWriteDeadline(time.Now().Add(liveWrite)) != nil {
			return false
		}
		if _, err := io.WriteString(w, event); err != nil {
			return false
		}
		return conn.Flush() == nil
	}
	if !send("retry: 1000\n\n") {
		return
	}
	number := r.URL.Query().Get("worker")
	sent := map[string]string{}
	tick := time.NewTimer(liveEvery)
	defer tick.Stop()
	for {
		s.slots.watch()
		logged := s.cfg.Events.Changed()
		_, read := s.slots.get()
		parts := s.commonParts()
		parts["detail"] = s.detail(number)
		for name, text := range parts {
			if sent[name] == text {
				delete(parts, name)
			}
			sent[name] = text
		}
		data, err := json.Marshal(parts)
		if err != nil || !send("data: "+string(data)+"\n\n") {
			return
		}
		// What happens is shown soon, and not more often than anybody can read.
		if !pause(r, shownAlike) {
			return
		}
		tick.Reset(liveEvery - shownAlike)
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		case <-logged:
		case <-read:
		}
	}
}

// pause tells whether the reader is still there afterwards.
func pause(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-timer.C:
		return true
	}
}
