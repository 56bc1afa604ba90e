package main

import (
	"testing"

	"github.com/flaked/flaked/internal/core/seq"
)

func TestSeqCreateStrict(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "invoice", "--mode", "strict").wants(t, exitOK, "created sequence invoice. Its first value", "")
	r, _ := w.show("invoice")
	if r.Mode != seq.Strict || r.HoldMs != seq.AnswerFor.Milliseconds() {
		t.Errorf("%+v", r)
	}
	w.call("create", "invoice:*", "--mode", "strict").wants(t, exitOK, "created template invoice:*", "")
	if r, _ := w.show("invoice:*"); r.Mode != seq.Strict {
		t.Errorf("%+v", r)
	}
	w.call("list").wants(t, exitOK, "  strict  ", "")
	for _, args := range [][]string{
		{"--mode", "strict", "--block", "64"}, {"--mode", "strict", "--ceiling", "5"}, {"--mode=strict", "--hold=1h"},
		{"--mode=strict", "--supply=1h"}, {"--mode=strict", "--hard-ceiling=7"},
	} {
		w.call(append([]string{"create", "x"}, args...)...).wants(t, exitUsage, "", " is not for strict sequences")
	}
	w.call("create", "x", "--mode", "loose").wants(t, exitUsage, "", `--mode must be segment or strict, not "loose"`)
	w.call("set", "invoice", "--ceiling", "5").wants(t, exitUsage, "", "--ceiling is not for strict sequences")
	w.call("set", "invoice", "--max", "int64").wants(t, exitOK, "changed sequence invoice", "")
}

func TestSeqShowNamesRecoverForAFrozenStrictSequence(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "order", "--mode", "strict").wants(t, exitOK, "created", "")
	w.losesData()
	w.call("show", "order").wants(t, exitOK, "`flaked seq recover order`", "")
}
