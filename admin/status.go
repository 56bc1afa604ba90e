package admin

import (
	"encoding/json"
	"net/http"

	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
)

// Status is the document at /v1/status: what this process knows of itself,
// without asking anybody. Fields are added to it and not changed. Instants are
// Unix milliseconds; what is not known is null.
type Status struct {
	Version string `json:"version"`
	Name    string `json:"name"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	// Listen is where IDs are served, Admin where this document is.
	Listen []string `json:"listen"`
	Admin  string   `json:"admin"`
	// NowMs is by the clock that IDs are made by, StartedMs by the machine's.
	NowMs     int64 `json:"now_ms"`
	StartedMs int64 `json:"started_ms"`

	Cluster node.ClusterSnapshot `json:"cluster"`
	// Ready: a GET would be answered with an ID. Else Reason is the error that
	// it would get, as "-NOTREADY starting reason=no-worker-yet".
	Ready  bool   `json:"ready"`
	Reason string `json:"reason"`
	// Workers are this process's, mostly one.
	Workers []node.Snapshot `json:"workers"`

	Connections Connections `json:"connections"`
	// IDs have been handed out since the start.
	IDs int64 `json:"ids"`
	// Requests are by command and result since the start: each command's "OK",
	// zero or not, and errors that there were.
	Requests []Requests `json:"requests"`
	// Durations are how long those took, in milliseconds, and Sizes how many IDs
	// they were answered with, since the start.
	Durations Histogram `json:"durations"`
	Sizes     Histogram `json:"sizes"`
	// Events are what was logged last, oldest first.
	Events []Event `json:"events"`
}

// Connections are those that ask for IDs, since the start but for Open.
type Connections struct {
	Open       int64 `json:"open"`
	Total      int64 `json:"total"`
	Refused    int64 `json:"refused"` // over the limit
	IdleClosed int64 `json:"idle_closed"`
	SlowClosed int64 `json:"slow_closed"`
	BadTLS     int64 `json:"bad_tls"`
}

// Requests is how many of a command came to a result: "OK" or an error's code.
type Requests struct {
	Command string `json:"command"` // "GET"; "other" for what is no command
	Result  string `json:"result"`
	N       int64  `json:"n"`
}

// Histogram is how values are spread.
type Histogram struct {
	Count   int64    `json:"count"`
	Sum     float64  `json:"sum"`
	Buckets []Bucket `json:"buckets"`
}

// Bucket is N values up to LE and above the bucket before. LE is null for those
// above all others.
type Bucket struct {
	LE *float64 `json:"le"`
	N  int64    `json:"n"`
}

// describe makes one of the line protocol's, with values in another unit.
func describe(h lineproto.Histogram, unit float64) Histogram {
	out := Histogram{Count: h.Count(), Sum: h.Sum * unit, Buckets: []Bucket{}}
	for i, n := range h.N {
		b := Bucket{N: n}
		if i < len(h.Bounds) {
			b.LE = new(h.Bounds[i] * unit)
		}
		out.Buckets = append(out.Buckets, b)
	}
	return out
}

// About is what a process says of itself that does not change.
type About struct {
	Version string
	Name    string
	Host    string
	PID     int
	Listen  []string
	Admin   string
	Cluster string // its name
	// Dev: there is no ZooKeeper, and nothing is kept.
	Dev bool
	// StartedMs is Unix milliseconds.
	StartedMs int64
}

// shownEvents is how many events are in the status document.
const shownEvents = 50

// Status is what this process knows of itself at this moment.
func (s *Server) Status() Status {
	a := s.cfg.About
	doc := Status{
		Version: a.Version, Name: a.Name, Host: a.Host, PID: a.PID, Listen: a.Listen, Admin: a.Admin, StartedMs: a.StartedMs,
		Workers: s.cfg.Workers(), Events: s.cfg.Events.Last(shownEvents),
	}
	if doc.Listen == nil {
		doc.Listen = []string{} // a list in JSON, too
	}
	if doc.Workers == nil {
		doc.Workers = []node.Snapshot{}
	}
	err := s.cfg.Ready()
	if doc.Ready = err == nil; !doc.Ready {
		doc.Reason = oneLine(err.Error())
	}
	if len(doc.Workers) > 0 {
		doc.Cluster, doc.NowMs = doc.Workers[0].Cluster, doc.Workers[0].NowMs
	}
	doc.count(s.cfg.Counters())
	doc.IDs += s.made.Load()
	return doc
}

func (doc *Status) count(c lineproto.Counters) {
	doc.Connections = Connections{
		Open: c.ConnsOpen, Total: c.ConnsTotal, Refused: c.ConnsRefused,
		IdleClosed: c.ConnsIdle, SlowClosed: c.ConnsSlow, BadTLS: c.ConnsBadTLS,
	}
	doc.IDs = c.IDs
	doc.Durations, doc.Sizes = describe(c.Durations, 1000), describe(c.Sizes, 1)
	doc.Requests = make([]Requests, 0, len(c.Requests))
	for _, r := range c.Requests {
		doc.Requests = append(doc.Requests, Requests{r.Command, r.Result, r.N})
	}
}

func (s *Server) statusRoutes() []route {
	return []route{{
		path: "/v1/status", about: "what this node knows of itself, in JSON",
		serve: func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.Status()) },
	}}
}

// writeJSON answers with a document. That it could not be sent is its reader's
// business alone.
func writeJSON(w http.ResponseWriter, code int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(doc)
}
