package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"regexp"
	"testing"
)

// A running node takes samples although nobody looks at its page, and the page draws what clients got.
func TestPageShowsTime(t *testing.T) {
	t.Parallel()
	url := withAdmin(t, "--dev")
	harness.Eventually(t, "it serves", func() bool { _, ok := fetch(t, url+"/v1/ids?n=100"); return ok })
	drawn := regexp.MustCompile(`(?s)<title id="t-ids">.*?<path class="line" d="M[0-9. ]+(h0|L).*?<figcaption[^>]*>[^<]*[1-9][0-9.]*/s`)
	harness.Eventually(t, "the page has a chart of the IDs", func() bool {
		page, _ := fetch(t, url+"/")
		return drawn.MatchString(page)
	})
}
