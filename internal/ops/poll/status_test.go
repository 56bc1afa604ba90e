package poll

import (
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/health"
)

func TestStatusOfTwoClusters(t *testing.T) {
	a, b := node.ClusterSnapshot{Name: "prod", UUID: "u"}, node.ClusterSnapshot{Name: "prod", UUID: "v"}
	c, none := node.ClusterSnapshot{Name: "test", UUID: "w"}, node.ClusterSnapshot{}
	two := "the addresses belong to two clusters: h0 to prod (u) and h"
	for _, row := range []struct {
		name, wanted string
		clusters     []node.ClusterSnapshot
		failed       int // -1: none
		err          string
	}{
		{"one", "", []node.ClusterSnapshot{a, none, a}, -1, ""},
		{"two", "", []node.ClusterSnapshot{a, none, c}, -1, two + "2 to test (w)"},
		{"of the same name", "prod", []node.ClusterSnapshot{a, b}, -1, two + "1 to prod (v)"},
		{"by name", "prod", []node.ClusterSnapshot{a, c}, 1, ""},
		{"by UUID", "v", []node.ClusterSnapshot{a, b}, 0, ""},
	} {
		var found []health.AskedNode
		for i := range row.clusters {
			found = append(found, health.AskedNode{Address: "h" + string(rune('0'+i)), Says: &health.Answer{}})
		}
		err := compareClusters(row.wanted, found, row.clusters)
		if (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
		for i, w := range found {
			if (w.Says == nil) != (i == row.failed) || w.Says == nil && !strings.Contains(w.Why, "it belongs to cluster ") {
				t.Errorf("%s: node %d: %+v", row.name, i, w)
			}
		}
	}
}
