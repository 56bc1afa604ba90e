package monitoring

import (
	"bytes"
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
)

const (
	rulesFile     = "../../../deploy/prometheus/flaked.rules.yml"
	ruleTestsFile = "../../../deploy/prometheus/flaked.rules.test.yml"
	incidentsFile = "../../../deploy/prometheus/flaked.incidents.test.yml"
	dashboardFile = "../../../deploy/grafana/flaked.json"
	runbookFiles  = "../../../docs/guides/alerts-*.md"
)

// The metrics of a node follow Prometheus' conventions.
func TestMetricsFollowConventions(t *testing.T) {
	t.Parallel()
	s := scrape(t)
	for name, text := range map[string][]byte{"well": s.well, "lost": s.lost} {
		problems, err := promlint.New(bytes.NewReader(text)).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s: %s", name, p.Metric, p.Text)
		}
	}
}

// docs/metrics.md names every exported metric and label. A test of package admin checks
// the reverse, because a running node does not export every metric at every moment.
func TestExportedIsDocumented(t *testing.T) {
	t.Parallel()
	doc := read(t, "../../../docs/metrics.md")
	for name, labels := range export(t) {
		family := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if !strings.HasPrefix(family, "flaked_") {
			continue
		}
		row := regexp.MustCompile("(?m)^\\| `" + family + "` \\|.*$").FindString(doc)
		if row == "" {
			t.Errorf("docs/metrics.md says nothing of %s", family)
		}
		for label := range labels {
			if !slices.Contains([]string{"job", "instance", "le", "worker"}, label) && !strings.Contains(row, "`"+label+"`") {
				t.Errorf("docs/metrics.md does not say that %s has the label %s", family, label)
			}
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

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal([]byte(read(t, rulesFile)), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, slices.DeleteFunc(g.Rules, func(r rule) bool { return r.Alert == "" })...)
	}
	if len(all) < 9 {
		t.Fatalf("%d rules", len(all))
	}
	return all
}

// Each alert asks for metrics that exist, and links its entry in the runbook.
func TestAlertsUseExportedMetrics(t *testing.T) {
	t.Parallel()
	e, entries := export(t), runbookEntries(t)
	for _, r := range rules(t) {
		e.check(t, r.Alert, r.Expr)
		if len(entries[r.Alert]) != 1 {
			t.Errorf("%s has entries in %q, want one in docs/guides/alerts-*.md", r.Alert, entries[r.Alert])
			continue
		}
		if want := "https://github.com/flaked/flaked/blob/main/docs/guides/" + entries[r.Alert][0] + "#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s says too little", r.Alert)
		}
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
	}
	for alert, files := range entries {
		if !slices.ContainsFunc(rules(t), func(r rule) bool { return r.Alert == alert }) {
			t.Errorf("%q have %s, which is no alert", files, alert)
		}
	}
}

// runbookEntries returns the base names of the runbook's files that have an entry for an alert, by
// the alert's name.
func runbookEntries(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(runbookFiles)
	if err != nil || len(files) < 2 {
		t.Fatalf("the runbook has the files %q: %v", files, err)
	}
	entries := map[string][]string{}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`(?m)^## (Flaked\w+)$`).FindAllStringSubmatch(read(t, file), -1) {
			entries[m[1]] = append(entries[m[1]], filepath.Base(file))
		}
	}
	return entries
}

// docs/guides/alerts.md names each alert once, in the column of its severity and in the row of its page.
func TestEachAlertIsInTheIndex(t *testing.T) {
	t.Parallel()
	entries := runbookEntries(t)
	index := regexp.MustCompile(`(?m)^\| \[[^]]+\]\(([a-z-]+\.md)\) \| ([^|]*) \| ([^|]*) \|$`).FindAllStringSubmatch(read(t, "../../../docs/guides/alerts.md"), -1)
	for _, r := range rules(t) {
		var found []string
		for _, row := range index {
			for i, severity := range []string{"page", "ticket"} {
				if slices.Contains(strings.Split(row[2+i], ", "), r.Alert) {
					found = append(found, row[1]+" "+severity)
				}
			}
		}
		if want := slices.Concat(entries[r.Alert], []string{r.Labels["severity"]}); !slices.Equal(found, []string{strings.Join(want, " ")}) {
			t.Errorf("docs/guides/alerts.md lists %s as %q, want %q", r.Alert, found, want)
		}
	}
}

// Each alert's tests have a moment at which it fires and one at which it does not.
func TestRulesAreTested(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			Cases []struct {
				Alert  string `yaml:"alertname"`
				Alerts []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	if err := yaml.Unmarshal([]byte(read(t, ruleTestsFile)), &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := make(map[string]bool), make(map[string]bool)
	for _, g := range file.Tests {
		for _, c := range g.Cases {
			fires[c.Alert] = fires[c.Alert] || len(c.Alerts) > 0
			silent[c.Alert] = silent[c.Alert] || len(c.Alerts) == 0
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s: tested that it fires: %v, that it does not: %v", r.Alert, fires[r.Alert], silent[r.Alert])
		}
	}
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", rulesFile)
	promtool(t, "test", "rules", ruleTestsFile, incidentsFile)
}

// The tests of incidents use only metrics, labels and troubles that a node exports.
func TestIncidentsUseExportedMetrics(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			Name  string `yaml:"name"`
			Input []struct {
				Series string `yaml:"series"`
			} `yaml:"input_series"`
		} `yaml:"tests"`
	}
	if err := yaml.Unmarshal([]byte(read(t, incidentsFile)), &file); err != nil {
		t.Fatal(err)
	}
	e := export(t)
	for _, incident := range file.Tests {
		for _, in := range incident.Input {
			for _, m := range selector.FindAllStringSubmatch(in.Series, -1) {
				for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
					values, ok := e[m[1]][l[1]]
					if !ok || l[1] == "trouble" && !values[l[3]] {
						t.Errorf("%s: no node exports %s with %s=%q", incident.Name, m[1], l[1], l[3])
					}
				}
			}
		}
	}
}

// An alert gives the same advice as `flaked status`, word for word.
func TestAlertsGiveTheAdviceOfStatus(t *testing.T) {
	t.Parallel()
	var status strings.Builder
	sources, err := filepath.Glob("../../../clusterview/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no source of clusterview: %v", err)
	}
	for _, file := range sources {
		status.WriteString(read(t, file))
	}
	advice := map[string]string{
		"FlakedNotReady":        "See docs/guides/refusals.md.",
		"FlakedClockRefusing":   "Check with chronyc tracking, then set the clock right. The node then serves again by itself.",
		"FlakedClockWentBack":   "Check its time synchronisation (chronyc tracking).",
		"FlakedClockOffset":     "Check its time synchronisation (chronyc tracking).",
		"FlakedClockCoasting":   "Check with chronyc tracking, then set the clock right.",
		"FlakedClockLeap":       "Check with chronyc tracking, then set the clock right.",
		"FlakedLeaseNotRenewed": "Restore its connection to ZooKeeper before its lease expires.",
		"FlakedLeaseEnding":     "Restore its connection to ZooKeeper before its lease expires.",
		"FlakedFromCache":       "Restore its connection to ZooKeeper.",
		"FlakedStateDirectory":  "Check its disk. The reserved bound is only seconds ahead.",
		"FlakedFrozen":          "Start the missing nodes again, or see flaked cluster thaw --help.",
	}
	for _, r := range rules(t) {
		want, ok := advice[r.Alert]
		if !ok {
			continue
		}
		if !strings.Contains(r.Annotations["description"], want) {
			t.Errorf("%s does not say %q: %s", r.Alert, want, r.Annotations["description"])
		}
		if !strings.Contains(strings.ToLower(status.String()), strings.ToLower(want)) {
			t.Errorf("flaked status does not say %q, which %s says", want, r.Alert)
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
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &dashboard); err != nil {
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

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
