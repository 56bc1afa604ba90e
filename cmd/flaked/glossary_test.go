package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/health"
)

// pageLabel finds the labels of the status page, which are terms.
var pageLabel = regexp.MustCompile(`<(?:dt|th)[^>]*>([A-Za-z ]+)<`)

// Every term that flaked prints is in docs/glossary.md.
func TestGlossary(t *testing.T) {
	glossary := strings.ToLower(readFile(t, "docs/glossary.md"))
	labels := pageLabel.FindAllStringSubmatch(readFile(t, "internal/ops/web/page/page.html"), -1)
	if len(labels) < 10 {
		t.Fatalf("found only %d labels in the page", len(labels))
	}
	knows := func(where, term string) {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(strings.ToLower(term)) + `\b`).MatchString(glossary) {
			t.Errorf("docs/glossary.md does not have %q, which %s prints", term, where)
		}
	}
	for _, column := range statusHeader {
		knows("flaked status", column)
	}
	for state := range (health.Summary{}).ByState() {
		knows("flaked status", string(state))
	}
	for _, phase := range node.Phases() {
		knows("a node", string(phase))
	}
	for _, label := range labels {
		knows("the status page", label[1])
	}
}
