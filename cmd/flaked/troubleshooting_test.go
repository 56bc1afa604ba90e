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

// The errors that end a start have their texts in docs/troubleshooting.md.
func TestTroubleshootingHasStartErrors(t *testing.T) {
	section := sectionOf(readFile(t, "docs/troubleshooting.md"), "## A node does not start")
	for _, err := range []error{
		localcache.ErrLocked, localcache.ErrUnsafeDir, localcache.ErrUnsafeFile, localcache.ErrFilesystem,
		localcache.ErrOtherFormat,
		coordinator.ErrNoCluster, store.ErrUnreachable, store.ErrDenied,
		&node.StateOfOtherClusterError{Ours: "A", Found: "B"}, &node.OtherZooKeeperError{State: "A", Given: "B"},
		&node.DiffersError{Setting: node.SettingLayout, Asked: "A", Has: "B"},
	} {
		if !strings.Contains(section, "`"+err.Error()+"`") {
			t.Errorf("docs/troubleshooting.md lacks the start error %q", err)
		}
	}
	instant := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`)
	for _, err := range []error{&coordinator.FrozenError{}, &coordinator.FrozenError{By: "B"},
		&coordinator.FullError{}} {
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
