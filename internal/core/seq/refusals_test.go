package seq

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/store"
)

// A refusal says that ZooKeeper cannot be reached only if that is so: else people look for the fault in the network.
func TestRefusalSaysWhatHasFailed(t *testing.T) {
	for text, err := range map[string]error{
		"a quota is reached":                    fmt.Errorf("multi: %w", store.ErrQuota),
		"ZooKeeper cannot be reached":           fmt.Errorf("get: %w", store.ErrUnreachable),
		"The log of this node says why":         store.ErrDenied,
		"could not read or write what it needs": errors.New("/seq is not a record of flaked"),
	} {
		if got := noBlockAfter(err); !strings.Contains(got.Text, text) {
			t.Errorf("%v: %s", err, got.Text)
		}
	}
}
