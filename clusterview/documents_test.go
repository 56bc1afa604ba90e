package clusterview

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Every field that scripts may rely on is documented.
func TestStatusFieldsAreDocumented(t *testing.T) {
	inSection(t, "\n## With ZooKeeper\n", "\n## ", Report{}, ClusterReport{}, WorkerReport{}, Summary{}, Answer{})
}

func TestNodesFieldsAreDocumented(t *testing.T) {
	inSection(t, "\n## Without ZooKeeper\n", "\n## ", NodesReport{}, Unread{}, Addresses{}, NodeReport{}, NodesSummary{}, Seen{})
}

// inSection fails unless a section of docs/status-json.md has each field of these documents.
func inSection(t *testing.T, title, end string, documents ...any) {
	t.Helper()
	text, err := os.ReadFile("../docs/status-json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), title)
	section, _, _ = strings.Cut(section, end)
	if !found {
		t.Fatal("there is no such section")
	}
	for _, v := range documents {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && name != "-" && !regexp.MustCompile("[`.]"+name+"(\\[\\])?[`.]").MatchString(section) {
				t.Errorf("%T: %s is not in docs/status-json.md", v, name)
			}
		}
	}
}
