package main

import (
	"encoding/json"
	"testing"
)

// A log in JSON ends with the error that serve ended with, and nothing else is printed.
func TestFatalErrorIsALineOfTheLog(t *testing.T) {
	r := call(t, "", "serve", "--log-format", "json", "--dev", "--admin", "off", "--listen", "127.0.0.1:0",
		"--token-file", "/nonexistent")
	var entry map[string]any
	if err := json.Unmarshal([]byte(r.stderr), &entry); err != nil || r.code != exitUsage || r.stdout != "" {
		t.Fatalf("%v: %+v", err, r)
	}
	const text = "--token-file: file /nonexistent not found. Create it or correct the path. See `flaked serve --help`."
	if entry["@level"] != "error" || entry["@message"] != text || entry["exit_code"] != float64(exitUsage) {
		t.Errorf("%v", entry)
	}
	// Without a log there is no line to be found.
	call(t, "", "serve", "--log-format", "json", "--log-level", "off", "--dev", "--token-file",
		"/nonexistent").wants(t, exitUsage, "", "--token-file: file /nonexistent not found")
	call(t, "", "serve", "--log-format", "text", "--dev", "--token-file", "/nonexistent").wants(t, exitUsage, "",
		"flaked: --token-file: file /nonexistent not found")
}
