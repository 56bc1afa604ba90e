package admin

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/clusterview"
)

//go:embed page
var pageFiles embed.FS

// page is the status page: HTML that is complete without a script, and updates of its parts
// for the script that keeps it current.
type page struct {
	past    *past
	streams *places

	mu   sync.Mutex // guards what follows
	last shared
}

// shared is the last rendering of the parts that are the same for all readers.
type shared struct {
	at    time.Time
	parts map[string]string
	// cells is what the map was rendered from. The map of a large cluster is expensive to
	// render, so it is rendered again only after a change.
	cells mapView
}

// shownAlike is how long a rendering is reused for all readers.
const shownAlike = 500 * time.Millisecond

// contentPolicy lets a browser run nothing but the page's own files. Labels in ZooKeeper,
// which anybody may have written, are part of the page.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

var pageTemplates = template.Must(template.New("").Funcs(template.FuncMap{
	"span": clusterview.Brief, "number": func(n any) string { return clusterview.Thousands(fmt.Sprint(n)) }, "over": func(ms int64) bool { return ms <= 0 }, "clock": clockWords, "utc": utc, "day": day, "label": label, "commas": wrapAfterCommas,
}).ParseFS(pageFiles, "page/*.html"))

// common are the names of the parts in shared. Each is the name of a template and the id of
// the element that contains it.
var common = []string{"serves", "left", "wrong", "node", "held", "map", "clocks", "sequences", "nodes", "events"}

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

// wholePage has the common parts, and those that one reader asked for.
type wholePage struct {
	Name, Cluster, Version string
	Dev                    bool
	MapOpen                bool // the map is shown at first
	Parts                  map[string]template.HTML
	Detail                 template.HTML
	Worker, ID             string // as typed
	Decoded                template.HTML
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	s.slots.watch()
	s.firstSlots(r.Context())
	query := r.URL.Query()
	doc := wholePage{
		Name: s.cfg.About.Name, Version: s.cfg.About.Version, Dev: s.cfg.About.Dev, Parts: map[string]template.HTML{},
		Worker: query.Get("worker"), ID: strings.TrimSpace(query.Get("id")),
	}
	if workers := s.cfg.Workers(); len(workers) > 0 {
		doc.Cluster = workers[0].Cluster.Name
	}
	for name, text := range s.commonParts() {
		doc.Parts[name] = template.HTML(text)
	}
	found, _ := s.slots.get()
	doc.MapOpen = !sparse(found.Summary) || doc.Worker != ""
	doc.Detail = template.HTML(s.detail(doc.Worker))
	if doc.ID != "" {
		doc.Decoded = template.HTML(s.decodedPart(doc.ID))
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = io.WriteString(w, render("page", doc))
}

// firstSlots waits up to one second for a reading of the slots that is as new as those of an open
// page. Without it, a reader without a script would have to load the page again. It waits for
// nothing while the slots cannot be read.
func (s *Server) firstSlots(ctx context.Context) {
	if c, _ := s.slots.get(); c.err == nil {
		s.slots.wait(ctx, time.Second)
	}
}

// commonParts returns the HTML of the common parts, at most shownAlike old.
func (s *Server) commonParts() map[string]string {
	p := &s.pages
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.last.parts == nil || now.Sub(p.last.at) >= shownAlike {
		view := s.look(now)
		parts := make(map[string]string, len(common))
		for _, name := range common {
			if name == "map" && p.last.cells.same(view.Map) {
				parts[name] = p.last.parts[name]
				continue
			}
			parts[name] = render(name, view)
		}
		p.last = shared{now, parts, view.Map}
	}
	return maps.Clone(p.last.parts)
}

// detail returns the HTML for one worker, whose number is as the reader typed it. It
// returns "" for an empty number.
func (s *Server) detail(number string) string {
	if number == "" {
		return ""
	}
	c, _ := s.slots.get()
	now, stale := time.Now(), c.err != nil || s.slots.overdue()
	view := detailView{Asked: number}
	if stale && !c.at.IsZero() {
		view.ReadAt, view.ReadAgo = utc(c.at.UnixMilli()), clusterview.Brief(now.Sub(c.at).Milliseconds())
	}
	n, err := strconv.Atoi(strings.TrimSpace(number))
	view.Valid = err == nil && n >= 0 && (c.Summary.Slots == 0 || n < c.Summary.Slots)
	if view.Valid {
		view.Number = n
		at, found := slices.BinarySearchFunc(c.Workers, n, func(w clusterview.WorkerReport, n int) int { return cmp.Compare(w.Worker, n) })
		if view.Found = found; found {
			var own []ownView
			for _, w := range s.cfg.Workers() {
				own = append(own, describeOwn(w))
			}
			view.Slot = describeSlot(c.Workers[at], ownWorkers(own), now.Sub(c.at), stale)
		}
	}
	view.Total = c.Summary.Slots
	return render("detail", view)
}

func (s *Server) pageDecode(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", contentPolicy)
	_, _ = io.WriteString(w, s.decodedPart(strings.TrimSpace(r.PathValue("id"))))
}

func (s *Server) decodedPart(id string) string {
	view := decodedView{Asked: id}
	d, err := s.decodeID(id)
	if err != nil {
		view.Error = oneLine(err.Error())
	} else {
		view.decoded = d
		view.Bits = bitsOf(d)
	}
	return render("decoded", view)
}

// render executes a template of the page. An error is a bug in the template, which tests
// find, so it is only shown.
func render(name string, view any) string {
	var b bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&b, name, view); err != nil {
		return template.HTMLEscapeString("cannot render this part: " + err.Error())
	}
	return b.String()
}
