package peer

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/sequence"
)

// FuzzReplies: the bytes that another node sends end each call once and in turn, and in the same way however they are
// cut into reads. A first value belongs to as many values as were asked for.
func FuzzReplies(f *testing.F) {
	for _, s := range []string{"1 1 o\n5 9 other\n", "5 9 o\r\n", "7\n", "7 7\n", "-ERR reason=too-many x\n-NOPERM no\n", "-FENCED\n\n",
		"1 1 o\n2 -9223372036854775808 o\n", "PONG\n", "9223372036854775807 9223372036854775807 o\n", "1 1 o\n1 9 o\n1 1 o\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, said string) {
		var before []*call
		for _, in := range []io.Reader{strings.NewReader(said), iotest.OneByteReader(strings.NewReader(said))} {
			var calls []*call
			for _, n := range []int64{1, 5, 1} {
				calls = append(calls, &call{PeerRequest: ordered.PeerRequest{N: n, Ownership: sequence.Ownership{Owner: "o"}}, done: make(chan struct{})})
			}
			l := &link{address: "a:1", wake: make(chan struct{}, 1), sent: append([]*call(nil), calls...)}
			ended := l.readLoop(dialog.NewReader(in, "a:1", maxLine))
			answered := len(calls) - len(l.sent)
			l.finish(ended, nil) // panics if a call has ended
			for i, k := range calls {
				if i >= answered && (k.err != ended || k.got != ordered.Answer{}) {
					t.Fatalf("%q: call %d of %d has %v, %v", said, i, answered, k.got, k.err)
				}
				if _, refused := errors.AsType[*ids.ReplyError](k.err); i < answered && k.err != nil && !refused &&
					!errors.Is(k.err, ordered.ErrNothingIssued) {
					t.Fatalf("%q: call %d: %v", said, i, k.err)
				}
				var first, last int64
				if k.err == nil {
					var owner string
					_, err := fmt.Sscanf(strings.Split(said, "\n")[i], "%d %d %s", &first, &last, &owner)
					if err != nil || k.got.First != first || first < 0 || last < first || last-first < k.N-1 ||
						k.got.Owner == "" {
						t.Fatalf("%q: call %d has %v", said, i, k.got)
					}
				}
				if before != nil && (k.got != before[i].got || (k.err == nil) != (before[i].err == nil)) {
					t.Fatalf("%q: %v, %v in one piece, %v, %v in bytes", said, before[i].got, before[i].err,
						k.got, k.err)
				}
			}
			before = calls
		}
	})
}
