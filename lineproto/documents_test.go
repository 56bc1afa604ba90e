package lineproto

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// Each request has a row in the table of docs/protocol.md, and each row a request. Those of Redis clients alone stand
// in the list below the table of RESP.
func TestProtocolDocumentNamesEachRequest(t *testing.T) {
	data, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string // names of requests
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`[A-Z]+.*?"+`) \| .* \| .* \|$`).FindAllSubmatch(data, -1) {
		for _, name := range regexp.MustCompile("`([A-Z]+)").FindAllSubmatch(row[1], -1) {
			rows = append(rows, string(name[1]))
		}
	}
	table := commandTable()
	for _, c := range table {
		if !c.resp && !slices.Contains(rows, c.name) {
			t.Errorf("docs/protocol.md has no row for the request %s", c.name)
		}
		if c.resp && !regexp.MustCompile("[ `]"+c.name+"[ `*,]").Match(data) {
			t.Errorf("docs/protocol.md does not name the request %s of Redis clients", c.name)
		}
	}
	for _, name := range rows {
		if !slices.ContainsFunc(table, func(c command) bool { return c.name == name }) {
			t.Errorf("docs/protocol.md has a row for %s, which is no request", name)
		}
	}
	if len(rows) < 20 {
		t.Errorf("found only the rows %v", rows)
	}
}
