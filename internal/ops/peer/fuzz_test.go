package peer

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq"
)

// FuzzReplies: the bytes that another node sends end each call once and in turn, and in the same way however they are
// cut into reads. A first value belongs to as many values as were asked for.
func FuzzReplies(f *testing.F) {
	for _, s := range []string{"1 1\n5 9\n", "5 9\r\n", "7\n", "-ERR reason=too-many x\n-NOPERM no\n", "-FENCED\n\n",
		"1 1\n2 -9223372036854775808\n", "PONG\n", "9223372036854775807 9223372036854775807\n", "1 1\n1 9\n1 1\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, said string) {
		var before []*call
		for _, in := range []*bufio.Reader{bufio.NewReader(strings.NewReader(said)),
			bufio.NewReader(iotest.OneByteReader(strings.NewReader(said)))} {
			var calls []*call
			for _, n := range []int64{1, 5, 1} {
				calls = append(calls, &call{n: n, done: make(chan struct{})})
			}
			l := &link{address: "a:1", wake: make(chan struct{}, 1), sent: append([]*call(nil), calls...)}
			ended := l.read(in)
			answered := len(calls) - len(l.sent)
			l.finish(ended, nil) // panics if a call has ended
			for i, k := range calls {
				if i >= answered && (k.err != ended || k.first != 0) {
					t.Fatalf("%q: call %d of %d has %d, %v", said, i, answered, k.first, k.err)
				}
				if _, refused := errors.AsType[*ids.ReplyError](k.err); i < answered && k.err != nil && !refused &&
					!errors.Is(k.err, seq.ErrNotAsked) {
					t.Fatalf("%q: call %d: %v", said, i, k.err)
				}
				var first, last int64
				if k.err == nil {
					_, err := fmt.Sscanf(strings.Split(said, "\n")[i], "%d %d", &first, &last)
					if err != nil || k.first != first || first < 0 || last < first || last-first < k.n-1 {
						t.Fatalf("%q: call %d has %d", said, i, k.first)
					}
				}
				if before != nil && (k.first != before[i].first || (k.err == nil) != (before[i].err == nil)) {
					t.Fatalf("%q: %d, %v in one piece, %d, %v in bytes", said, before[i].first, before[i].err,
						k.first, k.err)
				}
			}
			before = calls
		}
	})
}
