package health

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/record"
)

var write = flag.Bool("write", false, "write the tables of docs/troubleshooting.md")

const guide = "../../../docs/troubleshooting.md"

// docs/troubleshooting.md has the tables of causes and of errors. `go generate ./internal/ops/health` writes them.
func TestGuideHasTheTables(t *testing.T) {
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, table := range []struct {
		name, head string
		rows       []string
	}{
		{"refusals", "| reply, and what it means | now, and later |", refusalRows()},
		{"errors", "| reply | what to do |", errorRows(t)},
		{"causes", "| cause, and what it means | now, and later |", causeRows()},
	} {
		begin, end := "<!-- generated: "+table.name+" -->\n", "<!-- end: "+table.name+" -->\n"
		before, rest, found := strings.Cut(page, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("%s lacks the lines %q and %q", guide, begin, end)
		}
		line := strings.Repeat("|---", strings.Count(table.head, "|")-1) + "|\n"
		page = before + begin + table.head + "\n" + line + strings.Join(table.rows, "") + end + after
	}
	if *write {
		err = os.WriteFile(guide, []byte(page), 0o644)
	}
	if err != nil || page != string(text) && !*write {
		t.Errorf("%s differs from the tables of the program: go generate ./internal/ops/health (%v)", guide, err)
	}
}

// more has the sections that say more about a cause.
var more = map[string]string{
	"zookeeper-down": "#zookeeper-is-down", "record-missing": "#zookeeper-lost-its-data",
	"no-cluster": "#zookeeper-lost-its-data", "cluster-damaged": "#zookeeper-lost-its-data",
	"sequences-frozen":   "operate.md#named-sequences-after-a-loss",
	"sequences-damaged":  "operate.md#named-sequences-after-a-loss",
	"time-field-used-up": "layouts.md#changing-it", "time-field-ending": "layouts.md#changing-it",
	"down": "operate.md#replace-a-lost-machine-or-disk",
}

// sections has the sections of the guide that say what to do about a cause.
var sections = map[string]string{
	"zookeeper": "ZooKeeper is down", "lease-expired": "ZooKeeper is down",
	"clock-behind": "A clock is wrong", "clock-wrong": "A clock is wrong", "clock-offset": "A clock is wrong",
	"clock-leap": "A clock is wrong", "clock-coasting": "A clock is wrong", "leader-clock": "A clock is wrong",
	"frozen": "ZooKeeper lost its data", "few-free": "All workers are held",
}

// word returns the cause, with a link to the section that says more.
func (r row) word() string {
	if more[r.cause] == "" {
		return "`" + r.cause + "`"
	}
	return "[`" + r.cause + "`](" + more[r.cause] + ")"
}

// do returns the cell that says what to do.
func (r row) do() string {
	if title := sections[r.cause]; title != "" {
		return "[" + title + "](#" + strings.ReplaceAll(strings.ToLower(title), " ", "-") + ")"
	}
	// The guide begins with the first, and is the second.
	advice := strings.Replace(r.advice, " The node then serves by itself.", "", 1)
	advice = strings.Replace(advice, ", and see docs/troubleshooting.md", "", 1)
	if r.later == "" {
		return advice
	}
	return advice + " **Later:** " + r.later
}

var figure = regexp.MustCompile(`=-?\d+`)

// refusalRows returns a row for each cause for which a node refuses.
func refusalRows() (rows []string) {
	for _, cause := range node.Causes() {
		r, reply := rowOf(string(cause)), cause.Reply()
		cell := "`" + figure.ReplaceAllString(reply.Error(), "=N") + "` (" + r.word() + ")"
		if strings.Contains(reply.Text, "reason=") { // else the reply says what it means
			cell = "`reason=" + r.cause + "`: " + r.problem("").Text
		}
		if r.clients != otherNodes {
			cell += ". " + r.clients
		}
		rows = addRow(rows, cell, r.do())
	}
	return rows
}

// addRow adds a row, or a line to the last row if that gives the same advice.
func addRow(rows []string, means, do string) []string {
	end := " | " + do + " |\n"
	if i := len(rows) - 1; i >= 0 && strings.HasSuffix(rows[i], end) {
		rows[i] = strings.TrimSuffix(rows[i], end) + "<br>" + means + end
		return rows
	}
	return append(rows, "| "+means+end)
}

// causeRows returns a row for each other cause, below a row for what clients notice of several.
func causeRows() (rows []string) {
	alike := map[string][]row{}
	for _, r := range table {
		if !slices.Contains(node.Causes(), node.Cause(r.cause)) {
			alike[r.clients] = append(alike[r.clients], r)
		}
	}
	var single []string
	for _, r := range table {
		group := alike[r.clients]
		if len(group) == 1 {
			single = addRow(single, r.word()+": "+r.problem("").Text+". "+r.clients, r.do())
		} else if len(group) > 1 {
			rows = append(rows, "| **"+strings.TrimSuffix(r.clients, ".")+"** | |\n")
			for _, r := range group {
				rows = addRow(rows, r.word()+": "+r.problem("").Text, r.do())
			}
		}
		delete(alike, r.clients)
	}
	return append(append(rows, "| **Other problems** | |\n"), single...)
}

// errorRows returns a row for each code and each reason of a sequence that an operator can do something about.
func errorRows(t *testing.T) (rows []string) {
	t.Helper()
	for _, class := range replies.Codes {
		if do := codes[class.Code]; do != "" {
			rows = append(rows, fmt.Sprintf("| `-%s ...` | %s |\n", class.Code, do))
		}
	}
	for _, reason := range record.Reasons {
		if do := reasons[reason]; do != "" {
			code := replies.Of(&record.Refusal{Reason: reason}).Code
			rows = append(rows, fmt.Sprintf("| `-%s reason=%s ...` | %s |\n", code, reason, do))
		}
	}
	if len(rows) != len(codes)+len(reasons) {
		t.Error("a row of the errors is for a code or a reason that the program does not have")
	}
	return rows
}

// codes says what to do about an error code that does not come from a refusal of a node.
var codes = map[ids.Code]string{
	ids.ERR: "`requires TLS`, `does not use TLS`: [use TLS](security.md#use-tls-and-a-token) on both sides. " +
		"`PROXY protocol`: [turn it off](deploy.md#behind-haproxy)",
	ids.NOAUTH: "Send a token. Commands take `--token-file` or `FLAKED_TOKEN`",
	ids.BUSY: "`limit=N`: use fewer connections, raise `LimitNOFILE=`, or add nodes. `limit_ids=N`: ask for fewer IDs " +
		"in a request, or add nodes. `limit_bytes=N`: find the clients that do not read replies",
	ids.NOPERM:    "[Add the name](security.md#rights-of-a-token) to the token's line, and connect again",
	ids.WRONGPASS: "Compare the token with the node's `--token-file`",
	ids.WRONGNODE: "A node of another cluster listens there. Correct the client's addresses or its cluster",
}

// reasons says what to do about an error of a sequence that is no problem of the cluster.
var reasons = map[record.Reason]string{
	record.NoSequence:   "Create the sequence, or correct the name",
	record.TooManyNames: "Find the client that asks for more than 100 unknown names a second",
}
