package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// liveEvery is the time between two updates when nothing happens. It is a little longer
	// than watchedEvery: a reading of the slots triggers an update by itself.
	liveEvery = 1250 * time.Millisecond
	// liveWrite is how long a browser may take to accept an update. A slower one is
	// disconnected, and reconnects by itself.
	liveWrite = 5 * time.Second
)

// live sends the changed parts of a page as server-sent events. It returns when the browser
// disconnects or is too slow, or when the server ends.
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	leave := s.pages.streams.take(r.Context(), fromOf(r))
	if leave == nil {
		all, one := s.pages.streams.limits()
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "too many status pages open: the limits are %d per node and %d per address. Close one.\n", all, one)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx
	conn := http.NewResponseController(w)
	// A stream lasts longer than readTimeout. net/http would take an expired read deadline
	// for a client that has disconnected.
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		s.log.Debug("streaming page updates failed", "error", err)
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
		// Events are shown soon, but no more often than a person can read them.
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

// pause waits for d, and reports whether the browser is still connected afterwards.
func pause(r *http.Request, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(r.Context(), d)
	defer cancel()
	<-ctx.Done()
	return r.Context().Err() == nil
}
