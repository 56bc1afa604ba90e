package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// countingTo returns a fake node's replies to GET and NEXT: numbers from 1 on, at most limit in one
// reply. After the given number of replies it refuses.
func countingTo(limit int, replies int64) func(string) string {
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
		if count > limit {
			return fmt.Sprintf("-ERR a count must be 1 to %d, digits only\n", limit)
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
		addr := fakeNode(t, "tcp", "127.0.0.1:0", countingTo(10_000, 1000))
		r := call(t, "", append(strings.Fields(command), "--addr", addr)...)
		if r.code != exitOK || r.stderr != "" || r.stdout != numbersTo(20001) {
			t.Errorf("%s: exit %d, %d bytes, %s", command, r.code, len(r.stdout), r.stderr)
		}
	}
}

// A batch that fails loses nothing that was printed, and the error says how much that is.
func TestFailedBatchSaysWhatWasPrinted(t *testing.T) {
	addr := fakeNode(t, "tcp", "127.0.0.1:0", countingTo(10_000, 2))
	call(t, "", "get", "25000", "--addr", addr).wants(t, exitFailure, numbersTo(20_000), "flaked: 20000 of 25000 printed, then failed: "+addr+" answered -NOTREADY stopping")
	// A reply that is cut off is not printed.
	cut := fakeNode(t, "tcp", "127.0.0.1:0", func(string) string { return "1\n2\n" })
	call(t, "", "get", "3", "--addr", cut, "--timeout", "200ms").wants(t, exitUnreachable, "", "timed out after 200ms")
}

// The first node of a list that answers is used, and stays in use.
func TestListOfNodesFailsOver(t *testing.T) {
	var asked [2]atomic.Int64
	refusing := fakeNode(t, "tcp", "127.0.0.1:0", func(string) string { asked[0].Add(1); return "-FENCED the lease has expired\n" })
	answers := countingTo(10_000, 1000)
	good := fakeNode(t, "tcp", "127.0.0.1:0", func(line string) string { asked[1].Add(1); return answers(line) })
	call(t, "", "get", "30000", "--addr", nobody+", "+refusing+","+good).wants(t, exitOK, numbersTo(30_000), "")
	if asked[0].Load() != 1 || asked[1].Load() != 3 {
		t.Errorf("the refusing node was asked %d times, the good one %d times, want 1 and 3", asked[0].Load(), asked[1].Load())
	}
	t.Setenv("FLAKED_ADDR", nobody+","+good)
	call(t, "", "seq", "next", "order").wants(t, exitOK, "30001\n", "")

	call(t, "", "get", "--addr", nobody+","+refusing).wants(t, exitFailure, "", "none of the 2 nodes can serve now. One of them: "+refusing+" answered -FENCED the lease has expired. The node lost its worker")
	call(t, "", "get", "--addr", nobody+","+nobody).wants(t, exitUnreachable, "", "none of the 2 nodes can serve now. One of them: no answer from a node at "+nobody)
	call(t, "", "get", "--addr", good+",").wants(t, exitUsage, "", `--addr: "" is not HOST:PORT`)
	call(t, "", "healthcheck", "--addr", good+","+nobody).wants(t, exitUsage, "", "--addr: a health check is of one node, and 2 are given")
	call(t, "", "bench", "--addr", good+","+nobody).wants(t, exitUsage, "", "--addr: a measurement is of one node, and 2 are given")
	// A request that is wrong is wrong for every node.
	wrong := fakeNode(t, "tcp", "127.0.0.1:0", func(string) string { return "-ERR reason=no-sequence there is no sequence order\n" })
	call(t, "", "seq", "next", "order", "--addr", wrong+","+good).wants(t, exitFailure, "", "there is no sequence order")
}
