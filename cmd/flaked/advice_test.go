package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/worker"
)

// Packages name no flags. withAdvice adds advice to their errors, even if another error wraps them. The transcripts
// have the errors that a command line can cause.
func TestAdviceGolden(t *testing.T) {
	random := worker.SegmentRandom
	_, noSegment := node.Settings{SegmentStart: &random}.Record("u", 0)
	var b strings.Builder
	for _, err := range []error{
		errors.New("boom"), noSegment,
		&node.StateOfOtherClusterError{Ours: "a", Found: "b"}, &coordinator.OtherClusterError{Found: "a", Ours: "b"},
		&node.OtherZooKeeperError{State: "a", Given: "b"},
		fmt.Errorf("starting: %w", &coordinator.FrozenError{Until: 1_700_000_000_000}),
		&coordinator.FrozenError{Until: 1_700_000_000_000, By: "me"},
		store.ErrQuota, store.ErrLocalSession,
		exitError(exitUnreachable, "%w. A command has said what to do", store.ErrUnreachable),
	} {
		_, text := exitCodeAndText(t.Context(), err)
		b.WriteString(text + "\n")
	}
	golden(t, "advice.txt", b.String())
}

// `flaked healthcheck` says in whole sentences what each refusal with a reason means.
func TestCausesOfReadyAreExplained(t *testing.T) {
	for _, cause := range node.Causes() {
		reply := cause.Reply()
		text := causeAdvice(reply)
		if strings.Contains(text, "%") || (text == "") != (reply.Reason() == "") {
			t.Errorf("%s: %q", reply.Line(), text)
		}
	}
}
