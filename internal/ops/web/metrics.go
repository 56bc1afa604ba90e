package web

import (
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/worker"
)

// metrics is a prometheus.Collector. Its values are read from the node's state at each scrape.
type metrics struct{ s *Server }

// Describe implements prometheus.Collector. Descriptions are made with the values.
func (metrics) Describe(chan<- *prometheus.Desc) {}

// family is a metric's name and description, with the names of its labels.
func family(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("flaked_"+name, help, labels, nil)
}

// sink takes the values of a scrape.
type sink chan<- prometheus.Metric

// pairs are names and values of labels, in turn.
func (out sink) send(kind prometheus.ValueType, name, help string, v float64, pairs []string) {
	var names, values []string
	for i := 0; i < len(pairs); i += 2 {
		names, values = append(names, pairs[i]), append(values, pairs[i+1])
	}
	out <- prometheus.MustNewConstMetric(family(name, help, names...), kind, v, values...)
}

func (out sink) gauge(name, help string, v float64, pairs ...string) {
	out.send(prometheus.GaugeValue, name, help, v, pairs)
}

func (out sink) counter(name, help string, n int64, pairs ...string) {
	out.send(prometheus.CounterValue, name, help, float64(n), pairs)
}

func (out sink) histogram(name, help string, h lineproto.Histogram) {
	cumulated, count := make(map[float64]uint64, len(h.Bounds)), uint64(0)
	for i, n := range h.N {
		count += uint64(n)
		if i < len(h.Bounds) {
			cumulated[h.Bounds[i]] = count
		}
	}
	out <- prometheus.MustNewConstHistogram(family(name, help), count, math.Max(0, h.Sum), cumulated)
}

func (out sink) summary(name, help string, n int64, ms float64) {
	out <- prometheus.MustNewConstSummary(family(name, help), uint64(n), ms/1000, nil)
}

// Collect implements prometheus.Collector. It does no I/O and does not wait for ZooKeeper.
func (m metrics) Collect(to chan<- prometheus.Metric) {
	s, out := m.s, sink(to)
	out.gauge("build_info", "1. The label is the release of flaked.", 1, "version", s.cfg.About.Version)
	out.gauge("ready", "1 while READY gets OK.", truth(s.cfg.Ready() == nil))
	out.requests(s)
	out.worker(s.cfg.Node())
	r := s.cfg.Issuer.Report()
	found := sequencesOf(r)
	out.sequences(r, found)
	for _, p := range s.statusWith(found).Problems {
		out.gauge("problem", "1 while the node has this problem, by cause and severity, in the words of "+
			"docs/troubleshooting.md.", 1, "cause", p.Cause, "severity", string(p.Severity))
	}
	c, _ := s.slots.get(false)
	if !c.at.IsZero() {
		for state, n := range c.Summary.ByState() {
			out.gauge("cluster_slots", "The cluster's workers by state, at the last successful reading of "+
				"ZooKeeper.", float64(n), "cluster", s.cfg.About.Cluster, "state", string(state))
		}
		out.gauge("cluster_read_timestamp_seconds", "Time of the last successful reading of the cluster's workers.",
			float64(c.at.UnixMilli())/1000)
	}
	const reads = "Readings of the cluster's workers, by result: ok or failed."
	out.counter("cluster_reads_total", reads, c.ok, "result", "ok")
	out.counter("cluster_reads_total", reads, c.failed, "result", "failed")
}

func (out sink) requests(s *Server) {
	c := s.cfg.Counters()
	for _, r := range c.Requests {
		out.counter("requests_total", "Requests of the line protocol, by command and result: OK or an error's "+
			"code.", r.N, "command", r.Command, "result", r.Result)
	}
	s.requests.Collect(out)
	out.histogram("request_duration_seconds", "Time from receiving a request of the line protocol to passing its "+
		"reply to the kernel.", c.Durations)
	out.histogram("request_ids", "Number of IDs in each reply of the line protocol to a request for IDs.", c.Sizes)
	for via, n := range map[string]int64{"line": c.IDs, "http": s.made.Load()} {
		out.counter("ids_total", "IDs sent to clients, over the line protocol (line) or HTTP (http).", n, "via", via)
	}
	out.gauge("connections_open", "Open connections of the line protocol.", float64(c.ConnsOpen))
	out.counter("connections_accepted_total", "Connections of the line protocol that the node has accepted and "+
		"served.", c.ConnsTotal)
	out.counter("connections_refused_total", "Connections of the line protocol that the node refused because they "+
		"exceeded the limit.", c.ConnsRefused)
	for reason, n := range map[string]int64{"idle": c.ConnsIdle, "slow": c.ConnsSlow, "tls": c.ConnsBadTLS} {
		out.counter("connections_closed_total", "Connections of the line protocol that the node closed: idle, slow "+
			"to read (slow), or without a TLS handshake (tls).", n, "reason", reason)
	}
}

func (out sink) worker(w node.Snapshot) {
	name, cl := label(w), w.Cluster
	of := workerGauge(func(family, help string, v float64, pairs ...string) {
		out.gauge(family, help, v, append([]string{"worker", name}, pairs...)...)
	})
	of("worker_info", "1. The labels name the worker, its holder and its cluster.", 1, "name", w.Name, "node",
		w.Node, "cluster", cl.Name, "cluster_uuid", cl.UUID, "layout", cl.Layout, "datacenter",
		strconv.FormatInt(cl.Datacenter, 10))
	of("worker_ready", "1 while the node can issue IDs with this worker.", truth(w.Ready))
	if !w.Ready {
		of("worker_refusing", "1 while the worker refuses, by cause.", 1, "cause", string(w.Cause))
	}
	for _, t := range node.Troubles() {
		of("worker_degraded", "1 while this trouble exists, else 0. The worker may still serve.",
			truth(slices.Contains(w.Degraded, t)), "trouble", t)
	}
	for _, p := range node.Phases() {
		of("worker_phase", "1 for the worker's current phase, 0 for each other phase.", truth(w.Phase == p),
			"phase", string(p))
	}
	of("worker_confirmed", "1 if the worker's record in ZooKeeper has been confirmed since the node's last start.",
		truth(w.Confirmed))
	if w.Worker != nil {
		of("worker_term", "Term of the worker's record.", float64(w.Term))
	}
	if w.LeaseLeftMs != nil {
		of("lease_left_seconds", "Lease left: how long the worker can serve without ZooKeeper. Negative: expired.",
			float64(*w.LeaseLeftMs)/1000)
		of("reserve_left_seconds", "Time left to the reserved bound: how long the worker can serve without its state "+
			"directory. Negative: passed.", float64(*w.ReservedLeftMs)/1000)
	}
	if layout, err := worker.ParseLayout(cl.Layout); err == nil {
		of("worker_capacity_ids_per_second", "Most IDs that the worker can make in a second, by the layout.",
			float64(layout.Sequences())/layout.Unit.Seconds())
	}
	of.clock(w.Clock)
	of("zookeeper_session", "1 while the node has a session with ZooKeeper.", truth(w.ZooKeeper.Session))
	if age := w.ZooKeeper.HeartbeatAgeMs; age != nil {
		of("heartbeat_age_seconds", "Time since ZooKeeper acknowledged the last heartbeat.", float64(*age)/1000)
	}
	of("heartbeat_interval_seconds", "Interval between heartbeats.", float64(w.ZooKeeper.HeartbeatMs)/1000)
	out.counts(w.Counts)
	if ends := cl.IDsEndMs; ends != nil {
		out.gauge("epoch_expiry_timestamp_seconds", "Time at which the layout's time field is used up.",
			float64(*ends)/1000, "cluster", cl.Name)
	}
}

// workerGauge sends a gauge of a worker.
type workerGauge func(family, help string, v float64, pairs ...string)

func (of workerGauge) clock(c node.ClockSnapshot) {
	if c.OffsetMs != nil {
		for source, ms := range map[string][2]float64{"leader": {*c.OffsetMs, *c.UncertaintyMs},
			"worst": {*c.WorstMs, *c.WorstUncertaintyMs}} {
			of("clock_offset_seconds", "Clock offset from ZooKeeper's leader (leader) or from the voter that differs "+
				"most (worst). Positive: ahead.", ms[0]/1000, "source", source)
			of("clock_uncertainty_seconds", "Uncertainty of the clock offset.", ms[1]/1000, "source", source)
		}
		of("clock_voters", "Clocks that this clock was compared with at the last heartbeat.", float64(c.Voters))
		of("clock_voters_against", "Clocks that differed from this clock by more than 5 s at the last heartbeat.",
			float64(c.Against))
	}
	of("clock_unfollowed_leap_seconds", "How far the machine's clock has leapt ahead of the clock that IDs are made "+
		"from.", float64(c.UnfollowedLeapMs)/1000)
	of("clock_behind_seconds", "How far the clock is behind the last ID.", float64(c.BehindMs)/1000)
	of("clock_coasting_seconds", "How far the clock that IDs are made from is ahead of the machine's clock, which "+
		"went back.", float64(c.CoastingMs)/1000)
	of("clock_borrowed_seconds", "How far the last ID is ahead of the clock, in a cluster that borrows.",
		float64(c.BorrowedMs)/1000)
	of("clock_rollbacks", "Rollbacks counted in the IDs of this tenure, if the layout has a rollback field.",
		float64(c.Rollbacks))
}

func (out sink) counts(n node.CountsSnapshot) {
	for result, beats := range map[string]int64{"ok": n.Heartbeats, "failed": n.HeartbeatsFailed} {
		out.counter("heartbeats_total", "Heartbeats to ZooKeeper, by result: ok or failed.", beats, "result", result)
	}
	out.summary("heartbeat_duration_seconds", "Duration of heartbeats, failed ones included.",
		n.Heartbeats+n.HeartbeatsFailed, n.HeartbeatsTookMs)
	for result, writes := range map[string]int64{"ok": n.DiskWrites, "failed": n.DiskWritesFailed} {
		out.counter("state_writes_total", "Writes to the state directory, by result: ok or failed.", writes,
			"result", result)
	}
	out.summary("state_write_duration_seconds", "Time until writes to the state directory were durable, failed ones "+
		"included.", n.DiskWrites+n.DiskWritesFailed, n.DiskWritesTookMs)
	out.counter("sequence_waits_total", "Reservations that waited for the next tick because the current one was used "+
		"up.", n.TickWaits)
	out.counter("rollback_waits_total", "Reservations that waited because the clock had gone back a little.",
		n.RollbackWaits)
	out.counter("rollback_refusals_total", "Reservations that were refused because the clock had gone back further "+
		"than the node waits for.", n.RollbackRefusals)
}

// maxSequences is the number of named sequences that have metrics of their own.
const maxSequences = 100

func (out sink) sequences(r seq.Report, found []health.SequenceReport) {
	states := map[health.SequenceState]int{health.SeqInUse: 0, health.SeqAfterLoss: 0, health.SeqFrozen: r.FrozenTemplates,
		health.SeqExhausted: 0, health.SeqFamily: 0}
	for _, v := range found {
		states[v.State]++
	}
	for state, n := range states {
		out.gauge("named_sequences", "Named sequences that the node knows, by state.", float64(n), "state",
			string(state))
	}
	if r.ReadAgo >= 0 {
		out.gauge("named_sequences_read_age_seconds", "Time since the node last knew all changes of operators to "+
			"named sequences.", r.ReadAgo.Seconds())
	}
	out.counter("named_sequence_values_total", "Values of named sequences that the node has issued.", r.Issued)
	out.counter("named_sequence_blocks_total", "Blocks of values that the node has taken from ZooKeeper.", r.Blocks)
	out.counter("named_sequence_waits_total", "Requests for values that waited, mostly for ZooKeeper.", r.Waits)
	for reason, n := range r.Refused {
		out.counter("named_sequence_refusals_total", "Requests for values that were refused, by reason.", n,
			"reason", string(reason))
	}
	first, _ := firstSequences(found, maxSequences)
	for _, v := range first {
		out.gauge("named_sequence_used_ratio", "Part of the values that nodes have taken, 0 to 1. Only for 100 "+
			"sequences: those with problems, then the most used ones.", v.Used(), "sequence",
			v.Name)
		out.gauge("named_sequence_held_values", "Values that this node has taken and not issued. For the same 100 "+
			"sequences.", float64(v.Held), "sequence", v.Name)
		out.gauge("named_sequence_values_per_second", "Values that this node issues in a second. For the same 100 "+
			"sequences.", v.PerSecond, "sequence", v.Name)
		if v.Record.Mode.Owned() {
			out.owners(v)
		}
		if !v.Record.Mode.Holds() {
			out.gauge("named_sequence_unanswered_values", "Values of a strict sequence that this node has taken, or "+
				"perhaps taken, and not answered: nobody gets them, but for those that are being answered. For the "+
				"same 100 sequences.", float64(v.Unanswered), "sequence", v.Name)
		}
	}
}

// owners sends what only ordered sequences have.
func (out sink) owners(v *health.SequenceReport) {
	out.gauge("named_sequence_owned_sections", "Sections of an ordered sequence that this node owns. A plain one has "+
		"one section. For the same 100 sequences.", float64(v.OwnedSections), "sequence", v.Name)
	out.gauge("named_sequence_owned_timestamp_seconds", "Time when the last ownership began that this node knows of, "+
		"0 for none. For the same 100 sequences.", float64(v.Record.OwnedAt)/1000, "sequence", v.Name)
	out.counter("named_sequence_ownerships_total", "Ownerships of an ordered sequence so far, of all its sections, as "+
		"this node knows. For the same 100 sequences.", v.Term, "sequence", v.Name)
	out.counter("named_sequence_passed_values_total", "Values of an ordered sequence that this node got from other "+
		"nodes, for its clients. For the same 100 sequences.", v.Passed, "sequence", v.Name)
	out.counter("named_sequence_lapses_total", "Ownerships that this node lost because it did not renew the lease in "+
		"time. For the same 100 sequences.", v.Lapses, "sequence", v.Name)
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

// Collector returns a collector of the metrics of docs/http.md, without those of Go and of the
// process, for the registry of the program. Run must be running while it is registered.
func (s *Server) Collector() prometheus.Collector { return metrics{s} }

func (s *Server) metricsHandler() http.HandlerFunc {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: s.httpLog()})
	return func(w http.ResponseWriter, r *http.Request) {
		// promhttp negotiates the type.
		w.Header().Del("Content-Type")
		handler.ServeHTTP(w, r)
	}
}

// newRequests returns a counter of the requests of the admin port. A path is that of a route, or "other".
func newRequests() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "flaked_http_requests_total",
		Help: "HTTP requests on the admin port, by path and status code."}, []string{"path", "code"})
}
