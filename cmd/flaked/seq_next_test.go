package main

import "testing"

func TestSeqNext(t *testing.T) {
	values := func(line string) string {
		return map[string]string{"NEXT order": "7\n", "NEXT order 3": "7\n8\n9\n"}[line]
	}
	for _, row := range []asked{
		{"one", values, "order", 0, "7\n", ""},
		{"three", values, "order -n 3", 0, "7\n8\n9\n", ""},
		{"not created", says("-ERR reason=no-sequence there is no sequence order. Create it first\n"), "order",
			exitFailure, "", "Create it first. `flaked seq list` prints"},
		{"an old node", says("-ERR reason=no-sequence this node serves no sequences\n"), "order", exitFailure, "",
			"this node serves no sequences. Ask a node that does.\n"},
		{"no block", says("-NOTREADY reason=no-block x\n"), "order", exitFailure, "", "x. Ask another node, or try"},
		{"ceiling", says("-NOTREADY reason=ceiling retry_after_ms=5 the ceiling. Retry\n"), "order", exitFailure,
			"", "the ceiling. Retry. `flaked seq set --ceiling` raises"},
		{"exhausted", says("-EXHAUSTED reason=exhausted the max. Raise it\n"), "order", exitFailure, "",
			"Raise it. `flaked seq set --max` raises the max.\n"},
		{"busy", says("-BUSY x\n"), "order", exitFailure, "", "Ask another node"},
		{"no token", says("-NOAUTH x\n"), "order", exitFailure, "", "Give a token that the node knows"},
		{"no right", says("-NOPERM reason=no-right this token may not use sequence order\n"), "order", exitFailure, "",
			"may not use sequence order. Give another token with --token-file FILE or FLAKED_TOKEN, or add the " +
				"sequence to next= behind this token in the nodes' token file.\n"},
		{"negative", says("7\n-1\n8\n"), "order -n 3", exitFailure, "", `"-1", which is not a value`},
	} {
		row.args = "seq next " + row.args
		row.run(t)
	}
	call(t, "", "seq", "next", "order", "--addr", "127.0.0.1:1").wants(t, exitUnreachable, "",
		"connection refused. Start a node")
}
