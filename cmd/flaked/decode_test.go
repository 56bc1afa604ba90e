package main

import (
	"strings"
	"testing"
)

func TestDecodeTranscript(t *testing.T) {
	transcript(t, "decode.txt", func(args []string) result { return call(t, "", args...) }, nil)
}

func TestDecodeStandardInput(t *testing.T) {
	r := call(t, "1\n\n 2 \r\nx\n3", "decode", "--layout", "leaf", "-o", "json")
	r.wants(t, exitFailure, `{"id":"3"`, "flaked: \"x\" is not an ID")
	if strings.Count(r.stdout, "\n") != 3 || !strings.HasSuffix(r.stderr, "flaked: 1 of 4 could not be decoded\n") {
		t.Errorf("%+v", r)
	}
}
