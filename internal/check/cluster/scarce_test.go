//go:build linux

package cluster

import (
	"fmt"
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
		before, looks := r.pods(t), 0
		for began := time.Now(); time.Since(began) < time.Minute; looks++ {
			now := r.pods(t)
			for name, p := range before {
				if !now[name].ready || now[name].container != p.container {
					t.Fatalf("%s is not ready, or was started again: %+v", name, now[name])
				}
			}
			harness.Pass(t.Context(), 200*time.Millisecond)
		}
		return fmt.Sprintf("ready at each of %d looks", looks)
	})
	r.play(t, "100m of CPU, helm upgrade", func(t *testing.T) string { return r.upgraded(t, "flags.log-level=debug") })
}
