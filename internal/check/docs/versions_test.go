package docs

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	update  = flag.Bool("update", false, "write the table of tested versions into docs/clients.md")
	ranFile = flag.String("ran", "", "a file that names the versions that have run: the table must have no others")
)

// pins is a row of the table of tested versions in docs/clients.md. A nightly run tests each version in file that
// pattern finds: FLAKED_TEST_VERSIONS=1 scripts/test-clients.sh, and make zookeepers.
type pins struct {
	name, file, pattern string
	tried               string // with what it was tried, for the table
}

const (
	pom      = "clients/java/pom.xml"
	packages = "clients/python/trial/requirements.txt"
)

var tested = []pins{
	{"Go", "go.mod", `(?m)^go (\d+\.\d+)`, "client, node"},
	{"ZooKeeper", "scripts/zk-dev.sh", `(?m)^readonly VERSIONS='(.*)'`,
		"three servers: the campaign, power cuts; TLS and digest with the newest"},
	{"Java", pom, `<maven.compiler.release>(\d+)<`, "client; virtual threads with Java 24 or later, if installed"},
	{"Spring Boot", "scripts/trial-spring.sh", `(?m)set -- (.*)`,
		"two clients in one application, inserts, health; with and without AOT, on the JVM"},
	{"Hibernate", pom, `<hibernate.version>(.*)\.Final<`, "inserts"},
	{"MyBatis-Plus", pom, `<mybatis-plus.version>(.*)<`, "inserts"},
	{"ShardingSphere", pom, `<shardingsphere.version>(.*)<`, "inserts"},
	{"Python", "scripts/trial-python.sh", `versions/(3)\.\{(.*)\}`, "and the system's; all rows to Django"},
	{"gunicorn", packages, `(?m)^gunicorn==([\d.]+)`, "sync, gthread, gevent; each also with `--preload`"},
	{"uWSGI", packages, `(?m)^pyuwsgi==([\d.]+\d)`, "processes, threads, `--lazy-apps`, fork hooks"},
	{"Celery", packages, `(?m)^celery==([\d.]+)`, "prefork, threads, gevent, eventlet"},
	{"gevent", packages, `(?m)^gevent==([\d.]+)`, "calls that a timeout ends; patched before or after the import"},
	{"eventlet", packages, `(?m)^eventlet==([\d.]+)`, "the same, a server that forks"},
	{"uvicorn", packages, `(?m)^uvicorn==([\d.]+)`, "both clients"},
	{"Jupyter (ipykernel)", packages, `(?m)^ipykernel==([\d.]+)`, "both clients"},
	{"Django", "clients/python/pyproject.toml", `Django==([\d.]+); python_version >=`, "column default, `bulk_create`, migrations"},
	{"SQLAlchemy", "clients/python/pyproject.toml", `"SQLAlchemy==([\d.]+)`, "column default"},
	{"Node.js", "scripts/test-clients.sh", `(?m)^node_versions="(.*)"`, "ESM, CommonJS, worker threads"},
	{"Knex", "clients/node/package.json", `"knex": "(.*)"`, "inserts"},
	{"ioredis", "examples/node/package.json", `"ioredis": "\^?(.*)"`, "the example"},
}

// versions returns what the pattern finds in text, the oldest first, separated by commas.
func (p pins) versions(text string) string {
	var found []string
	for _, m := range regexp.MustCompile(p.pattern).FindAllStringSubmatch(text, -1) {
		words := strings.FieldsFunc(m[len(m)-1], func(r rune) bool { return r == ' ' || r == ',' })
		for i := range words {
			if len(m) == 3 { // 3.{9,13}
				words[i] = m[1] + "." + words[i]
			}
		}
		found = append(found, words...)
	}
	slices.SortFunc(found, compareVersions)
	return strings.Join(slices.Compact(found), ", ")
}

// notedAs has the names under which scripts note that a version ran, if that is not the row's name in lower case.
var notedAs = map[string]string{
	"Spring Boot": "spring-boot", "MyBatis-Plus": "mybatis-plus", "uWSGI": "pyuwsgi", "Jupyter (ipykernel)": "ipykernel",
	"Node.js": "node",
}

// notRun returns the versions, as the table has them, that the notes do not name: lines such as "node 18.20.8", which is
// a version 18.
func (p pins) notRun(versions, notes string) (missing []string) {
	name := cmp.Or(notedAs[p.name], p.name)
	for _, version := range strings.Split(versions, ", ") {
		noted := regexp.MustCompile(`(?im)^` + regexp.QuoteMeta(name+" "+version) + `(\.|$)`)
		if !noted.MatchString(notes) {
			missing = append(missing, version)
		}
	}
	return missing
}

// compareVersions orders 3.9 before 3.13.
func compareVersions(a, b string) int {
	pad := func(v string) string {
		var out strings.Builder
		for part := range strings.SplitSeq(v, ".") {
			out.WriteString(strings.Repeat("0", max(0, 8-len(part))) + part + ".")
		}
		return out.String()
	}
	return strings.Compare(pad(a), pad(b))
}

// The table of tested versions is that of what a nightly run tests.
func TestTestedVersions(t *testing.T) {
	const root, doc, begin, end = "../../..", "docs/clients.md", "<!-- versions -->\n", "<!-- end -->"
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	notes := ""
	if *ranFile != "" {
		text, err := os.ReadFile(*ranFile)
		if err != nil {
			t.Fatal(err)
		}
		notes = string(text)
	}
	table := "| | versions | tried |\n|---|---|---|\n"
	for _, p := range tested {
		versions := p.versions(read(p.file))
		if versions == "" {
			t.Errorf("%s: %s has no version of it any more. Correct the pattern", p.name, p.file)
		}
		if missing := p.notRun(versions, notes); *ranFile != "" && len(missing) > 0 {
			t.Errorf("%s: %s has %q, which did not run, or failed", p.name, doc, missing)
		}
		table += "| " + p.name + " | " + versions + " | " + p.tried + " |\n"
	}
	text := read(doc)
	before, rest, ok := strings.Cut(text, begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q and %q", doc, begin, end)
	}
	switch {
	case *update:
		if err := os.WriteFile(filepath.Join(root, doc), []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case shown != table:
		t.Errorf("%s does not show the versions that are tested. Write them: "+
			"go test ./internal/check/docs -run TestedVersions -args -update\n%s", doc, table)
	}
}

func TestVersionsAreFound(t *testing.T) {
	for name, c := range map[string]struct{ pattern, text, want string }{
		"a list":             {`set -- (.*)`, "set -- 3.10.0 3.2.0", "3.2.0, 3.10.0"},
		"several lines":      {`(?m)^x==([\d.]+)`, "x==10.2; old\nx==9.1\ny==3", "9.1, 10.2"},
		"one version twice":  {`v=(\S+)`, "v=1 v=1", "1"},
		"an end in brackets": {`versions/(3)\.\{(.*)\}`, "versions/3.{13,9}.*/bin", "3.9, 3.13"},
		"none":               {`v=(\S+)`, "w=1", ""},
	} {
		if got := (pins{pattern: c.pattern}).versions(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestVersionsThatDidNotRun(t *testing.T) {
	const notes = "node 18.20.8\nzookeeper 3.9.5\npyUwsgi 2.0.30.post1\nsqlalchemy 2.0.5\n"
	for name, c := range map[string]struct{ row, versions, want string }{
		"the beginning of one that ran": {"Node.js", "18", ""},
		"one that ran":                  {"ZooKeeper", "3.9.5", ""},
		"a package's own spelling":      {"uWSGI", "2.0.30", ""},
		"one of two":                    {"ZooKeeper", "3.8.6, 3.9.5", "3.8.6"},
		"only a longer number ran":      {"Node.js", "1", "1"},
		"only a shorter number ran":     {"SQLAlchemy", "2.0.58", "2.0.58"},
		"nothing of that name":          {"Java", "17", "17"},
	} {
		if got := strings.Join((pins{name: c.row}).notRun(c.versions, notes), ", "); got != c.want {
			t.Errorf("%s: %q did not run, want %q", name, got, c.want)
		}
	}
}
