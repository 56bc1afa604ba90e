package lineproto

import (
	"testing"

	"github.com/flaked/flaked/internal/check/upgrade"
)

func TestFrozenRequests(t *testing.T) {
	var names []string
	for _, c := range commandTable() {
		framing := "lines and RESP"
		if c.resp {
			framing = "RESP"
		}
		names = append(names, c.name+" in "+framing)
	}
	upgrade.Names(t, "requests", names)
}
