package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/ops/words"
)

//go:embed page
var pageFiles embed.FS

// contentPolicy lets a browser run nothing but the page's own files. Labels in ZooKeeper,
// which anybody may have written, are part of the page.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

var pageTemplates = template.Must(template.New("").Funcs(template.FuncMap{
	"span": words.Duration, "rate": words.PerSecond, "number": number,
	"over": func(ms int64) bool { return ms <= 0 }, "utc": utc, "day": day,
	"holds": holds, "writer": writer, "next": next,
}).ParseFS(pageFiles, "page/*.html"))

func pageFile(name, kind string) http.HandlerFunc {
	content, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(err) // embedded
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		_, _ = w.Write(content)
	}
}

// page answers with the status page: HTML that is complete without a script. The script fetches it
// again and again, and replaces the parts.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	if c, _ := s.slots.get(true); c.err == nil { // else a reader would wait for nothing
		s.slots.wait(r.Context(), time.Second, true)
	}
	v := s.look(time.Now())
	if id := strings.TrimSpace(r.URL.Query().Get("id")); id != "" {
		v.ID, v.Decoded = id, s.decodedPart(id)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(render("page", v))
}

func (s *Server) decodedPart(id string) *decodedView {
	d, err := s.decodeID(id)
	if err != nil {
		return &decodedView{Error: replies.OneLine(err.Error())}
	}
	return &decodedView{decoded: d, Bits: bitsOf(d)}
}

// render executes a template of the page. An error is a bug in the template, which tests
// find, so it is only shown.
func render(name string, v any) []byte {
	var b bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&b, name, v); err != nil {
		return []byte(template.HTMLEscapeString("cannot render this part: " + err.Error()))
	}
	return b.Bytes()
}
