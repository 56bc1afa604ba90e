package monitoring

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// patience bounds every wait. Each usually takes a second.
const patience = 40 * time.Second

// scrapes holds the metrics of two nodes: a healthy one, and one that has never reached a
// ZooKeeper.
type scrapes struct {
	well, lost []byte
}

// scraped is package-level state, because all tests of the binary share the metrics.
var scraped struct {
	once sync.Once
	scrapes
}

// scrape returns the metrics of the two nodes. The first call starts the nodes.
func scrape(t *testing.T) scrapes {
	t.Helper()
	scraped.once.Do(func() {
		dir := t.TempDir()
		binary := filepath.Join(dir, "flaked")
		build := exec.Command("go", "build", "-trimpath", "-o", binary, "github.com/flaked/flaked/cmd/flaked")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		well := serve(t, binary, "--dev")
		lost := serve(t, binary, "--zk", "127.0.0.1:1", "--state-dir", filepath.Join(dir, "state"))
		within(t, "the one is ready", func() bool { return status(t, well+"/readyz") == 200 })
		within(t, "the other knows why not", func() bool {
			return strings.Contains(string(fetch(t, lost+"/metrics")), "zookeeper-unreachable")
		})
		// The node exports metrics of the cluster's workers once somebody has read them.
		fetch(t, well+"/v1/workers")
		scraped.well, scraped.lost = fetch(t, well+"/metrics"), fetch(t, lost+"/metrics")
	})
	if scraped.lost == nil {
		t.Fatal("the nodes could not be scraped: see the first test that tried")
	}
	return scraped.scrapes
}

// serve starts a node that runs until the test ends. It returns the URL of the node's
// admin port, without a slash at the end.
func serve(t *testing.T, binary string, args ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the child has a copy
	cmd := exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--log-format", "text"}, args...)...)
	cmd.Stderr = log
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FLAKED_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, _ := os.ReadFile(name); t.Failed() {
			t.Logf("--- %s\n%s", strings.Join(args, " "), text)
		}
	})
	var addr string
	within(t, "it serves HTTP", func() bool {
		text, _ := os.ReadFile(name)
		if m := regexp.MustCompile(`listening for HTTP: address=(\S+)`).FindSubmatch(text); m != nil {
			addr = "http://" + string(m[1])
		}
		return addr != ""
	})
	return addr
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("after %s still not: %s", patience, what)
		}
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

func fetch(t *testing.T, url string) []byte {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// exported holds the names, labels and label values that the two nodes export: e[metric]
// has a key for each label, and e[metric][label] a key for each value.
type exported map[string]map[string]map[string]bool

func export(t *testing.T) exported {
	t.Helper()
	s := scrape(t)
	all := make(exported)
	for _, text := range [][]byte{s.well, s.lost} {
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
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
