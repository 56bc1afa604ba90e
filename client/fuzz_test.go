package client

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/worker"
)

// said is a connection whose other side has sent all that it ever sends.
type said struct{ net.Conn }

func (said) SetDeadline(time.Time) error { return nil }
func (said) Write(b []byte) (int, error) { return len(b), nil }
func saying(in io.Reader) *conn {
	return &conn{known: true, nc: said{}, in: dialog.NewReader(in, "", maxLine)}
}
func whole(text string) io.Reader    { return strings.NewReader(text) }
func bytewise(text string) io.Reader { return iotest.OneByteReader(strings.NewReader(text)) }

// FuzzReplies: what a node sends gives as many IDs as were asked for, each once in the reply, or an error. How the
// bytes are cut into reads changes nothing. A connection that is used again owes no bytes.
func FuzzReplies(f *testing.F) {
	for _, s := range []string{"1\n2\r\n3\n", "1 2 3\n", "-BUSY x\n", "1\n-ERR reason=too-many\n0\n", "0\n", "+1\n",
		"3 2 1\n",
		"1 2 3\n4\n", "owner=a:1 family=a* sections=5\n", "9223372036854775808\n", strings.Repeat("1", maxLine+1)} {
		f.Add(s)
	}
	q := query{verb: "NEXT a", name: "a"}
	exchanges := []func(c *conn) ([]worker.ID, error){
		func(c *conn) ([]worker.ID, error) { return c.get(nil, forIDs, 3, 2, time.Second) },
		func(c *conn) ([]worker.ID, error) { return c.get(nil, q, 3, 10, time.Second) },
		func(c *conn) ([]worker.ID, error) { return c.get(nil, query{q.verb, q.name, true}, 3, 10, time.Second) },
		func(c *conn) ([]worker.ID, error) {
			j := &job{query: q, want: 1, more: []*job{{query: q, want: 2}}}
			first, err := c.getAll(j)
			return append(slices.Clip(first), j.more[0].numbers...), errors.Join(err, j.more[0].err)
		},
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, exchange := range exchanges {
			c, slow := saying(whole(text)), saying(bytewise(text))
			got, err := exchange(c)
			again, err2 := exchange(slow)
			if !slices.Equal(got, again) || (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
				t.Fatalf("%d: %q gives %d, %v in one piece, %d, %v in bytes", i, text, got, err, again, err2)
			}
			rest := text[min(int(c.in.Bytes()), len(text)):]
			if err == nil && (len(got) != 3 || i == 0 && slices.Min(got) < 1 || slices.Min(got) < 0) ||
				!c.broken && len(rest) > 0 && len(text) <= maxLine {
				t.Fatalf("%d: %q gives %d, %v, and leaves %q, broken %v", i, text, got, err, rest, c.broken)
			}
			if refused, ok := errors.AsType[*ids.ReplyError](err); ok && !strings.Contains(text, refused.Line()) {
				t.Fatalf("%d: %q is refused with %q", i, text, refused.Line())
			}
		}
		var o owners
		o.learn("a:1", strings.TrimSuffix(text, "\n"), nil, time.Now())
		if at := o.sectionOf("a:1"); o.of("a:1") != nil || at.number >= 0 && o.families[at.name] <= at.number {
			t.Fatalf("%q: %+v at %+v", text, o, at)
		}
	})
}
