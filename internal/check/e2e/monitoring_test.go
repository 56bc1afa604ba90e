package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.yaml.in/yaml/v3"

	"github.com/flaked/flaked/internal/ops/health"
)

// These tests check deploy/prometheus and deploy/grafana by promtool, and against the metrics that the binary exports.
const (
	rulesFile     = "../../../deploy/prometheus/flaked.rules.yml"
	ruleTestsFile = "../../../deploy/prometheus/flaked.rules.test.yml"
	incidentsFile = "../../../deploy/prometheus/flaked.incidents.test.yml"
	dashboardFile = "../../../deploy/grafana/flaked.json"
)

// The metrics of a node follow Prometheus' conventions.
func TestMetricsFollowConventions(t *testing.T) {
	t.Parallel()
	s := scrape(t)
	for name, text := range map[string]string{"well": s.well, "lost": s.lost} {
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s: %s", name, p.Metric, p.Text)
		}
	}
}

var (
	selector = regexp.MustCompile(`\b(flaked_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
)

// check fails the test for each metric, label and label value that the expression expr asks
// for and no node exports.
func (e exported) check(t *testing.T, where, expr string) {
	t.Helper()
	found := selector.FindAllStringSubmatch(expr, -1)
	if found == nil && !strings.Contains(expr, "up{") {
		t.Errorf("%s: no metric of flaked's in %s", where, expr)
	}
	for _, m := range found {
		labels, ok := e[m[1]]
		if !ok {
			t.Errorf("%s: no node exports %s", where, m[1])
			continue
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			name, op, value := l[1], l[2], l[3]
			values, ok := labels[name]
			if !ok {
				t.Errorf("%s: %s has no label %s", where, m[1], name)
			}
			// A node exports a cause only while it refuses for that cause.
			if (op == "=" || op == "!=") && len(values) > 0 && name != "cause" && !values[value] {
				t.Errorf("%s: %s is never exported with %s=%q", where, m[1], name, value)
			}
			for _, v := range strings.Split(value, "|") {
				if op == "=~" && name == "trouble" && !values[v] {
					t.Errorf("%s: there is no %s %q", where, name, v)
				}
			}
		}
	}
}

type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string  `yaml:"name"`
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, rulesFile)), &file); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, g := range file.Groups {
		all = append(all, slices.DeleteFunc(g.Rules, func(r alert) bool { return r.Alert == "" })...)
	}
	if len(all) < 9 {
		t.Fatalf("%d rules", len(all))
	}
	return all
}

// The rules pass promtool's checks and tests. Each alert asks for metrics that exist, gives the advice of its
// cause, and links more in the documents.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", rulesFile)
	promtool(t, "test", "rules", ruleTestsFile, incidentsFile)
	e := export(t)
	for _, r := range alerts(t) {
		e.check(t, r.Alert, r.Expr)
		page, anchor, _ := strings.Cut(strings.TrimPrefix(r.Annotations["runbook_url"],
			"https://github.com/flaked/flaked/blob/main/"), "#")
		if !strings.Contains(readFile(t, "../../../"+page), `<a id="`+anchor+`">`) {
			t.Errorf("%s: %s has no anchor %q", r.Alert, page, anchor)
		}
		if cause := r.Annotations["cause"]; cause != "" &&
			!strings.Contains(r.Annotations["description"], health.ProblemOf(cause).Advice) {
			t.Errorf("%s does not say %q", r.Alert, health.ProblemOf(cause).Advice)
		}
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
	}
}

// The dashboard's queries can be parsed, and ask for metrics that exist.
func TestDashboardUsesExportedMetrics(t *testing.T) {
	t.Parallel()
	type target struct{ Expr, RefID string }
	type panel struct {
		ID      int
		Title   string
		Type    string
		Targets []target
	}
	var dashboard struct {
		UID        string
		Panels     []panel
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, dashboardFile)), &dashboard); err != nil {
		t.Fatal(err)
	}
	e := export(t)
	variables := map[string]string{"__rate_interval": "5m", "datasource": ""}
	for _, v := range dashboard.Templating.List {
		variables[v.Name] = "x"
		if v.Type == "query" {
			e.check(t, "variable "+v.Name, v.Definition)
		}
	}
	ids := make(map[int]bool)
	rules := "groups:\n- name: dashboard\n  rules:\n"
	queries := 0
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("%s: two panels are number %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s asks nothing", p.Title)
		}
		for _, q := range p.Targets {
			e.check(t, p.Title, q.Expr)
			expr := os.Expand(q.Expr, func(name string) string {
				value, ok := variables[name]
				if !ok {
					t.Errorf("%s: there is no variable $%s", p.Title, name)
				}
				return value
			})
			rules += fmt.Sprintf("  - record: panel:%d:%d\n    expr: %q\n", p.ID, queries, expr)
			queries++
		}
	}
	if queries < 20 {
		t.Errorf("%d queries", queries)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint=none", file)
}

// promtool runs promtool. If promtool is missing, it skips the test, or fails it if
// FLAKED_TEST_TOOLS is "require".
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if cache, cacheErr := os.UserCacheDir(); cacheErr == nil {
			path, err = exec.LookPath(filepath.Join(cache, "flaked", "bin", "promtool"))
		}
	}
	if err != nil {
		if os.Getenv("FLAKED_TEST_TOOLS") == "require" {
			t.Fatalf("FLAKED_TEST_TOOLS=require, but no promtool: %v; scripts/get-tools.sh gets it", err)
		}
		t.Skipf("no promtool: %v; scripts/get-tools.sh gets it", err)
	}
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
