package replies

import (
	"testing"

	"github.com/flaked/flaked/internal/check/upgrade"
)

func TestFrozenCodes(t *testing.T) {
	var names []string
	for _, c := range Codes {
		names = append(names, string(c.Code))
	}
	upgrade.Names(t, "codes", names)
}
