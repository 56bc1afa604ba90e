package admin

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/worker"
)

// metric is one family of metrics. Its values are read from the node's state at each scrape.
type metric struct {
	name string
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// metrics is a prometheus.Collector. Its families are in the order of docs/http.md.
type metrics struct {
	s   *Server
	all []*metric

	build, ready                                            *metric
	requests, durations, sizes, ids, httpRequests           *metric
	connsOpen, connsAccepted, connsRefused, connsClosed     *metric
	workerInfo, workerReady, refusing, degraded             *metric
	phase, confirmed, term, capacity, lease, reserve        *metric
	offset, uncertainty, voters, against, leap, behind      *metric
	coasting, borrowed, rollbacks                           *metric
	session, heartbeatAge, heartbeatEvery                   *metric
	heartbeats, heartbeatTook, writes, writeTook            *metric
	tickWaits, rollbackWaits, rollbackRefusals, epochExpiry *metric
	slotsByState, slotsRead, slotsReads                     *metric
	sequences                                               sequenceMetrics
}

func newMetrics(s *Server) *metrics {
	m := &metrics{s: s}
	add := func(kind prometheus.ValueType, name, help string, labels ...string) *metric {
		name = "flaked_" + name
		f := &metric{name, prometheus.NewDesc(name, help, labels, nil), kind}
		m.all = append(m.all, f)
		return f
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue

	m.build = add(gauge, "build_info", "1. The label is the release of flaked.", "version")
	m.ready = add(gauge, "ready", "1 while a GET would be answered with an ID.")

	m.requests = add(counter, "requests_total", "Requests of the line protocol, by command and result: OK or an error's code.", "command", "result")
	m.durations = add(0, "request_duration_seconds", "Time from receiving a request of the line protocol to passing its reply to the kernel.")
	m.sizes = add(0, "request_ids", "Number of IDs in each reply of the line protocol to a request for IDs.")
	m.ids = add(counter, "ids_total", "IDs sent to clients, over the line protocol (line) or HTTP (http).", "via")
	m.httpRequests = add(counter, "http_requests_total", "HTTP requests on the admin port, by path and status code.", "path", "code")
	m.connsOpen = add(gauge, "connections_open", "Open connections of the line protocol.")
	m.connsAccepted = add(counter, "connections_accepted_total", "Connections of the line protocol that the node has accepted and served.")
	m.connsRefused = add(counter, "connections_refused_total", "Connections of the line protocol that the node refused because they exceeded the limit.")
	m.connsClosed = add(counter, "connections_closed_total", "Connections of the line protocol that the node closed: idle, slow to read (slow), or without a TLS handshake (tls).", "reason")

	m.workerInfo = add(gauge, "worker_info", "1. The labels name the worker, its holder and its cluster.", "worker", "name", "node", "cluster", "cluster_uuid", "layout", "datacenter")
	m.workerReady = add(gauge, "worker_ready", "1 while the node can issue IDs with this worker.", "worker")
	m.refusing = add(gauge, "worker_refusing", "1 while the worker refuses, by cause.", "worker", "cause")
	m.degraded = add(gauge, "worker_degraded", "1 while this trouble exists, else 0. The worker may still serve.", "worker", "trouble")
	m.phase = add(gauge, "worker_phase", "1 for the worker's current phase, 0 for each other phase.", "worker", "phase")
	m.confirmed = add(gauge, "worker_confirmed", "1 if the worker's record in ZooKeeper has been confirmed since the node's last start.", "worker")
	m.term = add(gauge, "worker_term", "Term of the worker's record.", "worker")
	m.capacity = add(gauge, "worker_capacity_ids_per_second", "Most IDs that the worker can make in a second, by the layout.", "worker")
	m.lease = add(gauge, "lease_left_seconds", "Lease left: how long the worker can serve without ZooKeeper. Negative: expired.", "worker")
	m.reserve = add(gauge, "reserve_left_seconds", "Time left to the reserved bound: how long the worker can serve without its state directory. Negative: passed.", "worker")
	m.offset = add(gauge, "clock_offset_seconds", "Clock offset from ZooKeeper's leader (leader) or from the voter that differs most (worst). Positive: ahead.", "worker", "source")
	m.uncertainty = add(gauge, "clock_uncertainty_seconds", "Uncertainty of the clock offset.", "worker", "source")
	m.voters = add(gauge, "clock_voters", "Clocks that this clock was compared with at the last heartbeat.", "worker")
	m.against = add(gauge, "clock_voters_against", "Clocks that differed from this clock by more than 5 s at the last heartbeat.", "worker")
	m.leap = add(gauge, "clock_unfollowed_leap_seconds", "How far the machine's clock has leapt ahead of the clock that IDs are made from.", "worker")
	m.behind = add(gauge, "clock_behind_seconds", "How far the clock is behind the last ID.", "worker")
	m.coasting = add(gauge, "clock_coasting_seconds", "How far the clock that IDs are made from is ahead of the machine's clock, which went back.", "worker")
	m.borrowed = add(gauge, "clock_borrowed_seconds", "How far the last ID is ahead of the clock, in a cluster that borrows.", "worker")
	m.rollbacks = add(gauge, "clock_rollbacks", "Rollbacks counted in the IDs of this tenure, if the layout has a rollback field.", "worker")
	m.session = add(gauge, "zookeeper_session", "1 while the node has a session with ZooKeeper.", "worker")
	m.heartbeatAge = add(gauge, "heartbeat_age_seconds", "Time since ZooKeeper acknowledged the last heartbeat.", "worker")
	m.heartbeatEvery = add(gauge, "heartbeat_interval_seconds", "Interval between heartbeats.", "worker")

	m.heartbeats = add(counter, "heartbeats_total", "Heartbeats to ZooKeeper, by result: ok or failed.", "result")
	m.heartbeatTook = add(0, "heartbeat_duration_seconds", "Duration of heartbeats, failed ones included.")
	m.writes = add(counter, "state_writes_total", "Writes to the state directory, by result: ok or failed.", "result")
	m.writeTook = add(0, "state_write_duration_seconds", "Time until writes to the state directory were durable, failed ones included.")
	m.tickWaits = add(counter, "sequence_waits_total", "Reservations that waited for the next tick because the current one was used up.")
	m.rollbackWaits = add(counter, "rollback_waits_total", "Reservations that waited because the clock had gone back a little.")
	m.rollbackRefusals = add(counter, "rollback_refusals_total", "Reservations that were refused because the clock had gone back further than the node waits for.")
	m.epochExpiry = add(gauge, "epoch_expiry_timestamp_seconds", "Time at which the layout's time field is used up.", "cluster")

	m.slotsByState = add(gauge, "cluster_slots", "The cluster's workers by state, at the last successful reading of ZooKeeper.", "cluster", "state")
	m.slotsRead = add(gauge, "cluster_read_timestamp_seconds", "Time of the last successful reading of the cluster's workers.")
	m.slotsReads = add(counter, "cluster_reads_total", "Readings of the cluster's workers, by result: ok or failed.", "result")
	m.sequences = newSequenceMetrics(add)
	return m
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, f := range m.all {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector. It does no I/O and does not wait for ZooKeeper.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	send := func(f *metric, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(f.desc, f.kind, v, labels...)
	}
	s := m.s
	send(m.build, 1, s.cfg.About.Version)
	send(m.ready, truth(s.cfg.Ready() == nil))
	m.collectRequests(out, send)
	m.collectNode(out, send)
	for at, n := range s.requests.all() {
		send(m.httpRequests, float64(n), at.path, strconv.Itoa(at.code))
	}
	c, _ := s.slots.get(false)
	if !c.at.IsZero() {
		for state, n := range c.Summary.ByState() {
			send(m.slotsByState, float64(n), s.cfg.About.Cluster, state)
		}
		send(m.slotsRead, float64(c.at.UnixMilli())/1000)
	}
	send(m.slotsReads, float64(c.ok), "ok")
	send(m.slotsReads, float64(c.failed), "failed")
	m.sequences.collect(s, send)
}

type sender func(f *metric, v float64, labels ...string)

func (m *metrics) collectRequests(out chan<- prometheus.Metric, send sender) {
	c := m.s.cfg.Counters()
	for _, r := range c.Requests {
		send(m.requests, float64(r.N), r.Command, r.Result)
	}
	out <- constHistogram(m.durations.desc, c.Durations)
	out <- constHistogram(m.sizes.desc, c.Sizes)
	send(m.ids, float64(c.IDs), "line")
	send(m.ids, float64(m.s.made.Load()), "http")
	send(m.connsOpen, float64(c.ConnsOpen))
	send(m.connsAccepted, float64(c.ConnsTotal))
	send(m.connsRefused, float64(c.ConnsRefused))
	send(m.connsClosed, float64(c.ConnsIdle), "idle")
	send(m.connsClosed, float64(c.ConnsSlow), "slow")
	send(m.connsClosed, float64(c.ConnsBadTLS), "tls")
}

func (m *metrics) collectNode(out chan<- prometheus.Metric, send sender) {
	w := m.s.cfg.Node()
	m.collectWorker(send, label(w), w)
	c := w.Counts
	send(m.heartbeats, float64(c.Heartbeats), "ok")
	send(m.heartbeats, float64(c.HeartbeatsFailed), "failed")
	out <- prometheus.MustNewConstSummary(m.heartbeatTook.desc, uint64(c.Heartbeats+c.HeartbeatsFailed), c.HeartbeatsTookMs/1000, nil)
	send(m.writes, float64(c.DiskWrites), "ok")
	send(m.writes, float64(c.DiskWritesFailed), "failed")
	out <- prometheus.MustNewConstSummary(m.writeTook.desc, uint64(c.DiskWrites+c.DiskWritesFailed), c.DiskWritesTookMs/1000, nil)
	send(m.tickWaits, float64(c.TickWaits))
	send(m.rollbackWaits, float64(c.RollbackWaits))
	send(m.rollbackRefusals, float64(c.RollbackRefusals))
	if w.Cluster.EpochEndsMs != nil {
		send(m.epochExpiry, float64(*w.Cluster.EpochEndsMs)/1000, w.Cluster.Name)
	}
}

func (m *metrics) collectWorker(send sender, name string, w node.Snapshot) {
	cl := w.Cluster
	send(m.workerInfo, 1, name, w.Name, w.Node, cl.Name, cl.UUID, cl.Layout, strconv.FormatInt(cl.Datacenter, 10))
	send(m.workerReady, truth(w.Ready), name)
	if !w.Ready {
		send(m.refusing, 1, name, string(w.Cause))
	}
	for _, t := range node.Troubles() {
		send(m.degraded, truth(slices.Contains(w.Degraded, t)), name, t)
	}
	for _, p := range node.Phases() {
		send(m.phase, truth(w.Phase == p), name, string(p))
	}
	send(m.confirmed, truth(w.Confirmed), name)
	if w.Worker != nil {
		send(m.term, float64(w.Term), name)
		send(m.lease, seconds(float64(*w.LeaseLeftMs)), name)
		send(m.reserve, seconds(float64(*w.ReservedLeftMs)), name)
	}
	if layout, err := worker.ParseLayout(cl.Layout); err == nil {
		send(m.capacity, float64(layout.Sequences())/layout.Unit.Seconds(), name)
	}
	c := w.Clock
	if c.OffsetMs != nil {
		send(m.offset, seconds(*c.OffsetMs), name, "leader")
		send(m.offset, seconds(*c.WorstMs), name, "worst")
		send(m.uncertainty, seconds(*c.UncertaintyMs), name, "leader")
		send(m.uncertainty, seconds(*c.WorstUncertaintyMs), name, "worst")
		send(m.voters, float64(c.Voters), name)
		send(m.against, float64(c.Against), name)
	}
	send(m.leap, seconds(float64(c.UnfollowedLeapMs)), name)
	send(m.behind, seconds(float64(c.BehindMs)), name)
	send(m.coasting, seconds(float64(c.CoastingMs)), name)
	send(m.borrowed, seconds(float64(c.BorrowedMs)), name)
	send(m.rollbacks, float64(c.Rollbacks), name)
	send(m.session, truth(w.ZooKeeper.Session), name)
	if w.ZooKeeper.HeartbeatAgeMs != nil {
		send(m.heartbeatAge, seconds(float64(*w.ZooKeeper.HeartbeatAgeMs)), name)
	}
	send(m.heartbeatEvery, seconds(float64(w.ZooKeeper.HeartbeatMs)), name)
}

// label returns a worker's number, or "none" before there is one.
func label(w node.Snapshot) string {
	if w.Worker == nil {
		return "none"
	}
	return strconv.Itoa(*w.Worker)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(ms float64) float64 { return ms / 1000 }

func constHistogram(desc *prometheus.Desc, h lineproto.Histogram) prometheus.Metric {
	cumulated, count := make(map[float64]uint64, len(h.Bounds)), uint64(0)
	for i, n := range h.N {
		count += uint64(n)
		if i < len(h.Bounds) {
			cumulated[h.Bounds[i]] = count
		}
	}
	return prometheus.MustNewConstHistogram(desc, count, math.Max(0, h.Sum), cumulated)
}

// Collector returns a collector of the metrics of docs/http.md, without those of Go and of the
// process, for the registry of the program. Run must be running while it is registered.
func (s *Server) Collector() prometheus.Collector { return newMetrics(s) }

func (s *Server) metricsHandler() http.HandlerFunc {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newMetrics(s), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: s.httpLog()})
	return func(w http.ResponseWriter, r *http.Request) {
		// promhttp negotiates the type.
		w.Header().Del("Content-Type")
		handler.ServeHTTP(w, r)
	}
}

// httpRequests counts the requests of the admin port, by path and status.
type httpRequests struct {
	mu sync.Mutex // guards n
	n  map[pathCode]int64
}

type pathCode struct {
	path string // a route's, or "other"
	code int
}

func (c *httpRequests) add(path string, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[pathCode]int64)
	}
	c.n[pathCode{path, code}]++
}

func (c *httpRequests) all() map[pathCode]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}
