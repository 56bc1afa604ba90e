package main

import (
	"fmt"
	"testing"
)

const sonyflakes = "time=39@10ms,sequence=8,datacenter=0,worker=16,epoch=1409529600000,order=written"

// aSonyflake was made by worker 7 on 2026-11-20. Decoded by leaf, it is from 2015.
const aSonyflake = "646934817669971975"

// statusWith returns a function that answers STATUS as a node with this layout.
func statusWith(layout string) func(string) string {
	return says(`{"cluster":{"name":"orders","layout":"` + layout + `"},"node":{"phase":"serving"}}` + "\n")
}

// nobody is an address that refuses connections.
const nobody = "127.0.0.1:1"

func TestDecodeByTheLayoutOfANode(t *testing.T) {
	addr := fakeNode(t, "tcp", "127.0.0.1:0", statusWith(sonyflakes))
	from := fmt.Sprintf(`"worker":7,"sequence":13,"layout":%q,"layout_from":"node %s, cluster orders"}`, sonyflakes,
		addr) + "\n"
	call(t, "", "decode", "-o", "json", "--addr", addr, aSonyflake).wants(t, exitOK, from, "")
	call(t, "", "decode", "--addr", addr, aSonyflake).wants(t, exitOK,
		"layout sonyflake: "+sonyflakes+", from node "+addr+", cluster orders\nID ", "")

	// A layout goes before a node.
	t.Setenv("FLAKED_ADDR", addr)
	call(t, "", "decode", "-o", "json", aSonyflake).wants(t, exitOK, from, "")
	t.Setenv("FLAKED_LAYOUT", recent)
	call(t, "", "decode", "-o", "json", "5").wants(t, exitOK, `"layout_from":"--layout"}`, "")
}

func TestDecodeReportsANodeWithoutLayout(t *testing.T) {
	for _, row := range []struct {
		name   string
		reply  func(string) string
		code   int
		reason string
	}{
		{"no layout yet", statusWith(""), exitFailure, "does not know its cluster's layout yet: it"},
		{"no token", says("-NOAUTH not authenticated. Send AUTH [user] token\n"), exitFailure,
			"answered -NOAUTH not authenticated. Send AUTH [user] token"},
		{"another server", says("-ERR unknown command 'STATUS'\n"), exitFailure, "answered -ERR unknown command"},
		{"a layout of a later release", statusWith("quantum"), exitFailure, `answered "quantum" for its layout`},
		{"no status", says("a 1\n"), exitFailure, `answered "a 1" to STATUS. Check that it is a flaked node`},
		{"hangs", says("hang"), exitUnreachable, "timed out after 200ms"},
	} {
		t.Run(row.name, func(t *testing.T) {
			addr := fakeNode(t, "tcp", "127.0.0.1:0", row.reply)
			call(t, "", "decode", "--addr", addr, "--timeout", "200ms", "5").wants(t, row.code, "", row.reason)
		})
	}
}
