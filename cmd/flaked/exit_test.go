package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/flaked/flaked/internal/core/store"
)

func TestExplain(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		name string
		ctx  context.Context
		err  error
		code int
		text string
	}{
		{"nothing", t.Context(), nil, 0, ""},
		{"something", t.Context(), errors.New("boom"), exitFailure, "boom"},
		{"in one line", t.Context(), errors.Join(errors.New("one"), errors.New("two\r\n")), exitFailure, "one; two"},
		{"wrapped", t.Context(), fmt.Errorf("x: %w", exitError(exitDegraded, "y")), exitDegraded, "x: y"},
		{"interrupted", interrupted, store.ErrUnreachable, exitFailure, "interrupted"},
		{"failed while interrupted", interrupted, errors.New("disk full"), exitFailure, "disk full"},
	} {
		if code, text := exitCodeAndText(row.ctx, row.err); code != row.code || text != row.text {
			t.Errorf("%s: %d %q, want %d %q", row.name, code, text, row.code, row.text)
		}
	}
}

func TestSeveralSentencesEndWithAFullStop(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "--rate must be positive": "--rate must be positive", "No. Do this": "No. Do this.",
		"No. Do this.": "No. Do this.",
		"no. See `x`":  "no. See `x`.", "1.5 of 2": "1.5 of 2",
	} {
		if got := withFullStop(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
