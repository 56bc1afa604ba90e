package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// countingTo returns a fake node's replies to GET and NEXT: numbers from 1 on. After the given number of
// replies it refuses.
func countingTo(replies int64) func(string) string {
	var n, last atomic.Int64
	return func(line string) string {
		words := strings.Fields(line)
		count := 1
		if words[0] == "NEXT" {
			words = words[1:]
		}
		if len(words) > 1 {
			count, _ = strconv.Atoi(words[1])
		}
		if count > 10_000 {
			return "-ERR a count must be 1 to 10000, digits only\n"
		}
		if n.Add(1) > replies {
			return "-NOTREADY stopping\n"
		}
		var b strings.Builder
		for range count {
			fmt.Fprintln(&b, last.Add(1))
		}
		return b.String()
	}
}

// numbersTo returns the numbers from 1 to n, one per line.
func numbersTo(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// More numbers than a node gives at once are fetched in batches.
func TestNumbersComeInBatches(t *testing.T) {
	for _, command := range []string{"get 20001", "seq next order -n 20001"} {
		addr := fakeNode(t, "tcp", "127.0.0.1:0", countingTo(1000))
		r := call(t, "", append(strings.Fields(command), "--addr", addr)...)
		if r.code != exitOK || r.stderr != "" || r.stdout != numbersTo(20001) {
			t.Errorf("%s: exit %d, %d bytes, %s", command, r.code, len(r.stdout), r.stderr)
		}
	}
}

// A batch that fails loses nothing that was printed, and the error says how much that is.
func TestFailedBatchSaysWhatWasPrinted(t *testing.T) {
	addr := fakeNode(t, "tcp", "127.0.0.1:0", countingTo(2))
	call(t, "", "get", "25000", "--addr", addr).wants(t, exitFailure, numbersTo(20_000),
		"flaked: 20000 of 25000 printed, then failed: "+addr+" answered -NOTREADY stopping")
	// A reply that is cut off is not printed.
	cut := fakeNode(t, "tcp", "127.0.0.1:0", func(string) string { return "1\n2\n" })
	call(t, "", "get", "3", "--addr", cut, "--timeout", "200ms").wants(t, exitUnreachable, "", "timed out after 200ms")
}
