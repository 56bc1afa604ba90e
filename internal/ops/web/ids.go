package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/worker"
)

// reserveTimeout is how long a request for IDs may wait for them.
const reserveTimeout = 5 * time.Second

// problem is the JSON document of an error.
type problem struct {
	Error problemText `json:"error"`
}

type problemText struct {
	Code string `json:"code"` // as in the line protocol
	Text string `json:"text"`
}

func (s *Server) ids(w http.ResponseWriter, r *http.Request) {
	n, err := count(r.URL.Query().Get("n"), lineproto.MaxBatch)
	if err != nil {
		writeError(w, err)
		return
	}
	ids, err := s.make(r.Context(), n)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header()["Content-Type"] = jsonType
	b := append(make([]byte, 0, 16+22*n), `{"ids":[`...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendInt(append(b, '"'), int64(id), 10), '"')
	}
	_, _ = w.Write(append(b, "]}\n"...))
}

// deadline is a context that ends reserveTimeout after its first use, by one goroutine. Its timer costs more than an
// ID, and nearly all requests are answered without a wait.
type deadline struct {
	context.Context
	cancel context.CancelFunc
}

func (d *deadline) Done() <-chan struct{} {
	if d.cancel == nil {
		d.Context, d.cancel = context.WithTimeout(d.Context, reserveTimeout)
	}
	return d.Context.Done()
}

func (d *deadline) end() {
	if d.cancel != nil {
		d.cancel()
	}
}

// make returns n IDs, or an error and no IDs. IDs reserved before an error are lost.
func (s *Server) make(ctx context.Context, n int) ([]worker.ID, error) {
	until := &deadline{Context: ctx}
	defer until.end()
	ids := make([]worker.ID, 0, n)
	for len(ids) < n {
		run, err := s.cfg.Reserve(until, n-len(ids))
		if err != nil {
			return nil, err
		}
		for i := range run.Len {
			ids = append(ids, run.At(i))
		}
	}
	s.made.Add(int64(n))
	return ids, nil
}

// writeError answers with an error of the line protocol. The code says whether to retry,
// and where. Any other error is answered as NOTREADY.
func writeError(w http.ResponseWriter, err error) {
	e := replies.Of(err)
	if after := retryAfter(e); after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(after))
	}
	writeProblem(w, replies.ClassOf(e.Code).HTTP, e)
}

func writeProblem(w http.ResponseWriter, status int, e *ids.ReplyError) {
	writeJSON(w, status, problem{problemText{string(e.Code), replies.OneLine(e.Text)}})
}

// retryAfter returns after how many seconds a retry makes sense, or 0 if it makes none.
func retryAfter(e *ids.ReplyError) int {
	if !replies.ClassOf(e.Code).Passes {
		return 0
	}
	return max(1, int((e.RetryAfter()+time.Second-1)/time.Second))
}

// decoded is the JSON document of a decoded ID. Parts are the bit fields from the most
// significant one, without the sign bit.
type decoded struct {
	ID          worker.ID `json:"id"`
	Time        string    `json:"time"`
	TimestampMs int64     `json:"timestamp_ms"`
	Datacenter  int64     `json:"datacenter"`
	Worker      int64     `json:"worker"`
	Sequence    int64     `json:"sequence"`
	Segment     int64     `json:"segment"`
	Layout      string    `json:"layout"`
	Parts       []part    `json:"parts"`
}

type part struct {
	Field string `json:"field"`
	Bits  uint8  `json:"bits"`
	Shift uint8  `json:"shift"` // bits below it
	Value int64  `json:"value"`
}

func (s *Server) decode(w http.ResponseWriter, r *http.Request) {
	d, err := s.decodeID(r.PathValue("id"))
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, d)
}

func (s *Server) decodeID(text string) (decoded, error) {
	id, err := worker.ParseID(text)
	if err != nil || id < 1 || text[0] == '0' || text[0] == '+' {
		return decoded{}, replies.ErrNoID
	}
	layout, err := s.layout()
	if err != nil {
		return decoded{}, err
	}
	f, err := layout.Decode(id)
	if err != nil {
		return decoded{}, replies.New(ids.ERR, err.Error())
	}
	d := decoded{
		ID: id, Time: layout.Time(f).Format("2006-01-02T15:04:05.000Z07:00"), TimestampMs: layout.Start(f.Tick),
		Datacenter: f.Datacenter, Worker: f.Worker, Sequence: f.Sequence, Segment: f.Segment, Layout: layout.String(),
	}
	for _, p := range layout.Parts() {
		d.Parts = append(d.Parts, part{p.Field.String(), p.Bits, p.Shift, int64(id) >> p.Shift & (1<<p.Bits - 1)})
	}
	return d, nil
}

// layout returns the cluster's layout, or a NOTREADY error while the node does not know it.
func (s *Server) layout() (worker.Layout, error) {
	if text := s.cfg.Node().Cluster.Layout; text != "" {
		return worker.ParseLayout(text)
	}
	return worker.Layout{}, replies.ErrNoLayout
}
