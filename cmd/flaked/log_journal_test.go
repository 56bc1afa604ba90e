package main

import (
	"bytes"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestLogLinesHaveTheJournalsPriorities(t *testing.T) {
	var out bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Name: "flaked", Level: hclog.Trace, DisableTime: true,
		Output: journalWriter{&out}})
	log.Error("e", "n", 1)
	log.Warn("w", "lines", "one\ntwo")
	log.Info("i")
	log.Debug("d")
	log.Trace("t")
	want := "<3>[ERROR] flaked: e: n=1\n" +
		"<4>[WARN]  flaked: w:\n<4>  lines=\n<4>  | one\n<4>  | two\n<4>  \n" +
		"<6>[INFO]  flaked: i\n<7>[DEBUG] flaked: d\n<7>[TRACE] flaked: t\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}
