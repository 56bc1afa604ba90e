package web

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/ops/health"
)

// Status is the JSON document at /v1/status: the state of this process, known without
// asking ZooKeeper or another node. Fields may be added to it but are not changed.
// Timestamps are Unix milliseconds. Values that are not known are null.
type Status struct {
	About
	// NowMs is the time of the clock that IDs are made from.
	NowMs int64 `json:"now_ms"`

	Cluster node.ClusterSnapshot `json:"cluster"`
	// Ready means that READY gets OK. Otherwise Reason is the error that it gets, like
	// "-NOTREADY starting reason=no-worker-yet". For when that is, see Config.Ready.
	Ready  bool   `json:"ready"`
	Reason string `json:"reason"`
	// Problems are the problems of this node, the worst first, in the words of the page.
	Problems []health.Problem `json:"problems"`
	// Node is the state of the node and of its worker.
	Node node.Snapshot `json:"node"`

	// Sequences are the named sequences that this process knows. It is null if there are none.
	Sequences *health.Sequences `json:"sequences"`

	Connections Connections `json:"connections"`
	// IDs is the number of IDs handed out since the start, over the line protocol and HTTP.
	IDs int64 `json:"ids"`
	// Events are the last 50 log lines, oldest first.
	Events []Event `json:"events"`
	// Peers are the other nodes whose records this node has read within the longest lease. Only STATUS peers tells
	// them: a thousand nodes that each name a thousand would be too much for everybody who asks often.
	Peers []coordinator.Peer `json:"peers,omitempty"`
}

// Connections are the numbers of connections of the line protocol. Open is for this
// moment. All others are since the start.
type Connections struct {
	Open       int64 `json:"open"`
	Total      int64 `json:"total"`
	Refused    int64 `json:"refused"` // over the limit
	IdleClosed int64 `json:"idle_closed"`
	SlowClosed int64 `json:"slow_closed"`
	BadTLS     int64 `json:"bad_tls"`
}

// About is the part of a process's description that does not change while it runs.
type About struct {
	Version string `json:"version"`
	Name    string `json:"name"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	// Listen are the addresses that serve IDs. Admin is the address that serves the status.
	Listen []string `json:"listen"`
	Admin  string   `json:"admin"`
	// StartedMs is Unix milliseconds, from the machine's clock.
	StartedMs int64  `json:"started_ms"`
	Cluster   string `json:"-"` // its name
	// Dev means a development node: it has no ZooKeeper and saves nothing to disk.
	Dev bool `json:"-"`
}

// shownEvents is how many events the status document has.
const shownEvents = 50

// Status returns the state of this process at this moment.
func (s *Server) Status() Status { return s.statusWith(sequencesOf(s.cfg.Issuer.Report())) }

func (s *Server) statusWith(sequences []health.SequenceReport) Status {
	doc := Status{
		About: s.cfg.About,
		Node:  s.cfg.Node(), Events: s.cfg.Events.Last(shownEvents), Sequences: health.CountSequences(sequences),
	}
	doc.Problems = problemsOf(health.OwnWorker{Snapshot: doc.Node}, doc.Sequences, doc.Dev)
	if doc.Listen == nil {
		doc.Listen = []string{} // a list in JSON, too
	}
	err := s.cfg.Ready()
	if doc.Ready = err == nil; !doc.Ready {
		doc.Reason = replies.OneLine(err.Error())
	}
	doc.Cluster, doc.NowMs = doc.Node.Cluster, doc.Node.NowMs
	c := s.cfg.Counters()
	doc.Connections = Connections{
		Open: c.ConnsOpen, Total: c.ConnsTotal, Refused: c.ConnsRefused,
		IdleClosed: c.ConnsIdle, SlowClosed: c.ConnsSlow, BadTLS: c.ConnsBadTLS,
	}
	doc.IDs = c.IDs + s.made.Load()
	return doc
}

// problemsOf returns what needs attention at a node, the worst first.
func problemsOf(w health.OwnWorker, s *health.Sequences, dev bool) []health.Problem {
	found := append(w.Problems(), s.Problems(w.NowMs)...)
	if dev {
		found = append(found, health.DevelopmentProblem)
	}
	return health.WorstFirst(found)
}

// StatusLine returns the JSON of Status in one line, for lineproto.Config.Status. Events is empty: log
// lines stay at this server, which may be closed to clients.
func (s *Server) StatusLine(peers bool) string {
	doc := s.Status()
	doc.Events = []Event{}
	if peers && s.cfg.Met != nil {
		doc.Peers = s.cfg.Met()
	}
	var line strings.Builder
	encode(&line, doc)
	return strings.TrimSuffix(line.String(), "\n")
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.Status())
}

// jsonType is shared by all replies.
var jsonType = []string{"application/json"}

// writeJSON answers with a JSON document. It ignores write errors: the client has gone, and
// nobody else needs to know.
func writeJSON(w http.ResponseWriter, code int, doc any) {
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(code)
	encode(w, doc)
}

// encode writes a JSON document in one line.
func encode(w io.Writer, doc any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(doc)
}
