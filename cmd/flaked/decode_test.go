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

// What PowerShell pipes to the command may begin with a byte order mark, or be UTF-16.
func TestDecodeInputWithByteOrderMark(t *testing.T) {
	call(t, "\ufeff1\r\n2\r\n", "decode", "--layout", "leaf").wants(t, exitOK, "\n2 ", "")
	call(t, "\xff\xfe1\x00\n\x00", "decode", "--layout", "leaf").wants(t, exitUsage, "",
		"standard input: the text is in UTF-16. Save it as UTF-8")
}
