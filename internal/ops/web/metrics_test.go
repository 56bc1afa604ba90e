package web

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

func scrape(t *testing.T, addr string) string {
	t.Helper()
	code, _, body := do(t, "GET", "http://"+addr+"/metrics")
	if code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	return body
}

// fullMetrics are metrics of full.
const fullMetrics = `
flaked_build_info{version="1.2.3"} 1
flaked_ready 0
flaked_requests_total{command="GET",result="OK"} 123
flaked_requests_total{command="GET",result="CLOCK"} 2
flaked_request_duration_seconds_bucket{le="0.5"} 120
flaked_request_duration_seconds_bucket{le="1"} 124
flaked_request_duration_seconds_bucket{le="+Inf"} 125
flaked_request_duration_seconds_sum 60.25
flaked_request_duration_seconds_count 125
flaked_request_ids_bucket{le="4"} 122
flaked_request_ids_sum 100123
flaked_ids_total{via="line"} 100123
flaked_ids_total{via="http"} 0
flaked_http_requests_total{code="200",path="/v1/workers"} 1
flaked_http_requests_total{code="404",path="other"} 1
flaked_connections_open 3
flaked_connections_accepted_total 40
flaked_connections_refused_total 1
flaked_connections_closed_total{reason="idle"} 2
flaked_connections_closed_total{reason="slow"} 4
flaked_connections_closed_total{reason="tls"} 5
flaked_worker_info{cluster="orders",cluster_uuid="624812a4-0000-4000-8000-000000000000",datacenter="0",` +
	`layout="time=41@1ms,worker=10,sequence=12,epoch=2010-11-04T01:42:54.657Z",name="ids-1",` +
	`node="18b34979-0000-4000-8000-000000000000",worker="7"} 1
flaked_worker_ready{worker="7"} 0
flaked_worker_refusing{cause="clock-behind",worker="7"} 1
flaked_worker_degraded{trouble="clock-leap",worker="7"} 1
flaked_worker_degraded{trouble="zookeeper",worker="7"} 0
flaked_worker_phase{phase="serving",worker="7"} 1
flaked_worker_phase{phase="confirming",worker="7"} 0
flaked_worker_confirmed{worker="7"} 1
flaked_worker_term{worker="7"} 3
flaked_lease_left_seconds{worker="7"} 86400
flaked_reserve_left_seconds{worker="7"} 2.5
flaked_clock_offset_seconds{source="leader",worker="7"} -0.0015
flaked_clock_offset_seconds{source="worst",worker="7"} 0.612
flaked_clock_uncertainty_seconds{source="leader",worker="7"} 0.002
flaked_clock_uncertainty_seconds{source="worst",worker="7"} 0.0035
flaked_clock_voters{worker="7"} 5
flaked_clock_voters_against{worker="7"} 1
flaked_clock_unfollowed_leap_seconds{worker="7"} 4
flaked_clock_behind_seconds{worker="7"} 0.009
flaked_clock_coasting_seconds{worker="7"} 0.7
flaked_clock_borrowed_seconds{worker="7"} 0.003
flaked_clock_rollbacks{worker="7"} 2
flaked_zookeeper_session{worker="7"} 1
flaked_heartbeat_age_seconds{worker="7"} 0.812
flaked_heartbeat_interval_seconds{worker="7"} 3
flaked_heartbeats_total{result="ok"} 100
flaked_heartbeats_total{result="failed"} 2
flaked_heartbeat_duration_seconds_sum 0.5125
flaked_heartbeat_duration_seconds_count 102
flaked_state_writes_total{result="ok"} 300
flaked_state_writes_total{result="failed"} 1
flaked_state_write_duration_seconds_sum 0.90025
flaked_sequence_waits_total 11
flaked_rollback_waits_total 5
flaked_rollback_refusals_total 6
flaked_worker_capacity_ids_per_second{worker="7"} 4.096e+06
flaked_epoch_expiry_timestamp_seconds{cluster="orders"} 3.487858230209e+09
flaked_cluster_slots{cluster="orders",state="live"} 3
flaked_cluster_slots{cluster="orders",state="free"} 1021
flaked_cluster_reads_total{result="ok"} 1
flaked_cluster_reads_total{result="failed"} 0
`

func TestMetrics(t *testing.T) {
	addr, _ := start(t, full())
	do(t, "GET", "http://"+addr+"/v1/workers") // which reads the slots
	do(t, "GET", "http://"+addr+"/nowhere")
	body := scrape(t, addr)
	for _, line := range strings.Split(strings.TrimSpace(fullMetrics), "\n") {
		if !strings.Contains(body, "\n"+line+"\n") {
			name := line[:strings.IndexAny(line, "{ ")]
			t.Errorf("missing: %s\nthere is %q", line,
				regexp.MustCompile(`(?m)^`+name+`[{ ].*`).FindAllString(body, -1))
		}
	}
	if !regexp.MustCompile(`(?m)^flaked_cluster_read_timestamp_seconds \d`).MatchString(body) {
		t.Error("nothing says when the slots were read")
	}
}

// docs/http.md has every metric, and no other.
func TestEveryMetricIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `flaked_.*").FindAllString(string(doc), -1) {
		names, _, _ := strings.Cut(row[2:], "|")
		for _, name := range regexp.MustCompile("flaked_[a-z_]+").FindAllString(names, -1) {
			documented[name] = true
		}
	}
	for name := range metricsOfTheSource(t) {
		if !documented[name] {
			t.Errorf("docs/http.md says nothing of %s", name)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("docs/http.md has %s, which there is not", name)
	}
}

func metricsOfTheSource(t *testing.T) map[string]bool {
	t.Helper()
	source, err := os.ReadFile("metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool)
	names := regexp.MustCompile(`(?:gauge|counter|histogram|summary|\bof)\("(\w+)"`)
	for _, found := range names.FindAllStringSubmatch(string(source), -1) {
		there["flaked_"+found[1]] = true
	}
	return there
}
