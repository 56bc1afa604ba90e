package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
)

// pageLabel finds the labels of the status page, which are terms.
var pageLabel = regexp.MustCompile(`<(?:dt|th)[^>]*>([A-Za-z ]+)<`)

// Every term that flaked prints is in docs/glossary.md.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../internal/ops/web/page/page.html")
	if err != nil {
		t.Fatal(err)
	}
	glossary := strings.ToLower(string(text))
	if found := len(pageLabel.FindAllString(string(page), -1)); found < 10 {
		t.Fatalf("found only %d labels in the page", found)
	}
	knows := func(where, term string) {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(strings.ToLower(term)) + `\b`).MatchString(glossary) {
			t.Errorf("docs/glossary.md does not have %q, which %s prints", term, where)
		}
	}
	for _, column := range statusHeader {
		knows("flaked status", column)
	}
	for state := range (view.Summary{}).ByState() {
		knows("flaked status", state)
	}
	for _, phase := range node.Phases() {
		knows("a node", string(phase))
	}
	for _, label := range pageLabel.FindAllStringSubmatch(string(page), -1) {
		knows("the status page", label[1])
	}
}
