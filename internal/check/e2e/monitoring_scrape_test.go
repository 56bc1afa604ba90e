package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scrapes holds the metrics of two nodes: a healthy one, and one that has never reached a
// ZooKeeper.
type scrapes struct {
	well, lost string
}

// scraped is package-level state, because the tests of metrics share them.
var scraped struct {
	once sync.Once
	scrapes
}

// scrape returns the metrics of the two nodes. The first call starts the nodes.
func scrape(t *testing.T) scrapes {
	t.Helper()
	scraped.once.Do(func() {
		well, lost := withAdmin(t, "--dev"), withAdmin(t, "--zk", "127.0.0.1:1", "--state-dir", t.TempDir()+"/state")
		harness.Eventually(t, "the one is ready", func() bool { _, ok := fetch(t, well+"/readyz"); return ok })
		harness.Eventually(t, "the other knows why not", func() bool {
			text, _ := fetch(t, lost+"/metrics")
			return strings.Contains(text, "zookeeper-unreachable")
		})
		// The node exports metrics of the cluster's workers once somebody has read them.
		fetch(t, well+"/v1/workers")
		scraped.well, _ = fetch(t, well+"/metrics")
		scraped.lost, _ = fetch(t, lost+"/metrics")
	})
	if scraped.lost == "" {
		t.Fatal("the nodes could not be scraped: see the first test that tried")
	}
	return scraped.scrapes
}

// withAdmin starts a node, and returns the URL of its admin port, without a slash at the end.
func withAdmin(t *testing.T, args ...string) (url string) {
	t.Helper()
	p := harness.Launch(t, nil, strings.Join(args, " "), harness.Shipped.Binary(t), append([]string{"serve", "--listen", "127.0.0.1:0",
		"--admin", "127.0.0.1:0", "--log-format", "text"}, args...)...)
	harness.Eventually(t, "it serves HTTP", func() bool {
		m := regexp.MustCompile(`listening for HTTP: address=(\S+)`).FindStringSubmatch(p.Log())
		if m != nil {
			url = "http://" + m[1]
		}
		return m != nil
	})
	return url
}

// fetch returns the body of a page, and reports whether the status is 200.
func fetch(t *testing.T, url string) (body string, ok bool) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), res.StatusCode == http.StatusOK
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// exported holds the names, labels and label values that the two nodes export: e[metric]
// has a key for each label, and e[metric][label] a key for each value.
type exported map[string]map[string]map[string]bool

func export(t *testing.T) exported {
	t.Helper()
	s := scrape(t)
	all := make(exported)
	for _, text := range []string{s.well, s.lost} {
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for name, family := range families {
			var parts []string
			switch family.GetType() {
			case dto.MetricType_HISTOGRAM:
				parts = []string{"_bucket", "_sum", "_count"}
			case dto.MetricType_SUMMARY:
				parts = []string{"_sum", "_count"}
			default:
				parts = []string{""}
			}
			for _, part := range parts {
				all.add(name+part, family, part == "_bucket")
			}
		}
	}
	// Nodes that have named sequences export these. TestMetricsOfSequences of package admin sees them.
	for _, name := range []string{"used_ratio", "held_values", "values_per_second"} {
		all["flaked_named_sequence_"+name] = map[string]map[string]bool{"job": {}, "instance": {}, "sequence": {}}
	}
	return all
}

func (e exported) add(name string, family *dto.MetricFamily, bucket bool) {
	if e[name] == nil {
		// Prometheus itself adds these labels.
		e[name] = map[string]map[string]bool{"job": {}, "instance": {}}
	}
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			if e[name][l.GetName()] == nil {
				e[name][l.GetName()] = make(map[string]bool)
			}
			e[name][l.GetName()][l.GetValue()] = true
		}
	}
	if bucket {
		e[name]["le"] = map[string]bool{}
	}
}
