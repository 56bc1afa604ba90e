package replies

import (
	"strings"
	"testing"
	"time"
)

// FuzzParse: any reply of a node is passed on unchanged, and no node can make a client wait for more than an hour.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"-ERR no", "-BUSY retry_after_ms=5", "-CLOCK retry_after_ms=99999999999999", "-", "X "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		e := Parse("", line)
		if again := Parse("", e.Line()); *again != *e {
			t.Fatalf("%+v became %+v", e, again)
		}
		if d := e.RetryAfter(); d < 0 || d > time.Hour || strings.ContainsAny(e.Reason(), " \t") {
			t.Fatalf("%q: %v, %q", line, d, e.Reason())
		}
	})
}
