package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/localcache"
)

// Errors that end a start have their texts in docs/troubleshooting.md if there is more to say than they do.
func TestTroubleshootingHasStartErrors(t *testing.T) {
	section := sectionOf(readFile(t, "docs/troubleshooting.md"), "## A node does not start")
	for _, err := range []error{
		localcache.ErrLocked, localcache.ErrUnsafeDir, coordinator.ErrNoCluster, store.ErrUnreachable,
		&node.StateOfOtherClusterError{Ours: "A", Found: "B"},
	} {
		if !strings.Contains(section, "`"+err.Error()+"`") {
			t.Errorf("docs/troubleshooting.md lacks the start error %q", err)
		}
	}
	instant := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`)
	for _, err := range []error{&coordinator.FrozenError{}, &coordinator.FullError{}} {
		text, _, _ := strings.Cut(instant.ReplaceAllString(err.Error(), "A"), ":")
		text, _, _ = strings.Cut(strings.Replace(text, "all 0 ", "all N ", 1), " (")
		if !strings.Contains(section, "`"+text+"`") {
			t.Errorf("docs/troubleshooting.md lacks the start error %q", text)
		}
	}
}

// sectionOf returns the text from a heading to the next heading of the same depth or above.
func sectionOf(page, heading string) string {
	_, section, _ := strings.Cut(page, "\n"+heading+"\n")
	depth := strings.Index(heading, " ")
	if end := regexp.MustCompile(`\n#{1,` + strconv.Itoa(depth) + `} `).FindStringIndex(section); end != nil {
		section = section[:end[0]]
	}
	return "\n" + section
}
