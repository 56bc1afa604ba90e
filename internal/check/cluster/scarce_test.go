//go:build linux

package cluster

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/harness"
)

// TestLittleProcessor gives nodes a tenth of a processor, which docs/deploy.md advises against.
func TestLittleProcessor(t *testing.T) {
	r := nodes(t, "flaked-slow", "StatefulSet", "allowOpen=true", "resources.limits.cpu=100m", "resources.requests.cpu=100m")
	r.kubectl(t, "exec", "flaked-slow-0", "--", "/usr/local/bin/flaked", "seq", "create", numbers)
	r.ask()
	r.play(t, "100m of CPU, a minute", func(t *testing.T) string {
		harness.Pass(t.Context(), time.Minute)
		return "all the time ready"
	})
	r.play(t, "100m of CPU, helm upgrade", func(t *testing.T) string {
		began := time.Now()
		r.upgrade(t, "flags.log-level=debug")
		return "all replaced after " + seconds(r.settled(t, began, "upgraded"))
	})
}
