package dialog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/testkit/race"
)

// outcome returns what a reply has given: its numbers, or the error and what kind it is of.
func outcome(got []int64, err error) string {
	var refused *ids.ReplyError
	switch {
	case err == nil:
		return fmt.Sprint(got)
	case errors.As(err, &refused):
		return "refused " + string(refused.Code) + ": " + err.Error()
	case errors.Is(err, ErrLong):
		return "long"
	case errors.Is(err, ErrReply):
		return "no reply: " + err.Error()
	case errors.Is(err, io.EOF):
		return "closed"
	}
	return err.Error()
}

func TestReplyOfNumbers(t *testing.T) {
	const strange = ": reply is not from a flaked node. Check the address"
	for _, row := range []struct {
		said  string
		n     int
		least int64
		want  string
		left  string // behind the reply
	}{
		{"7\n", 1, 1, "[7]", ""},
		{"7\n8\n", 1, 1, "[7]", "8\n"},
		{"7\r\n8\n", 2, 1, "[7 8]", ""},
		{"9223372036854775807\n", 1, 1, "[9223372036854775807]", ""},
		{"0\n", 1, 0, "[0]", ""},
		{"0\n", 1, 1, `no reply: a:1: "0"` + strange, ""},
		{"-CLOCK behind_ms=9\n7\n", 3, 1, "refused CLOCK: a:1 answered -CLOCK behind_ms=9", "7\n"},
		{"-X\r\n", 1, 1, "refused X: a:1 answered -X", ""},
		{"7\n-CLOCK x\n", 2, 1, `no reply: a:1: "-CLOCK x"` + strange, ""},
		{"-\n", 1, 1, `no reply: a:1: "-"` + strange, ""},
		{"\n", 1, 1, `no reply: a:1: ""` + strange, ""},
		{"7", 1, 1, "closed", ""},
		{"", 1, 1, "closed", ""},
		{"7\n", 2, 1, "closed", ""},
		{strings.Repeat("7", 99) + "\n", 1, 1, "long", ""},
		{strings.Repeat("7", 63) + "\n", 1, 1, `no reply: a:1: "` + strings.Repeat("7", 60) + `"` + strange, ""},
		{"HTTP/1.1 400 Bad Request\n", 1, 1, `no reply: a:1: "HTTP/1.1 400 Bad Request"` + strange, ""},
	} {
		in := NewReader(strings.NewReader(row.said), "a:1", 64)
		got := outcome(Numbers(in, []int64(nil), row.n, row.least))
		if left := row.said[min(int(in.Bytes()), len(row.said)):]; got != row.want || left != row.left && got != "long" {
			t.Errorf("%q: %s, and %q is left, want %s and %q", row.said, got, left, row.want, row.left)
		}
	}
}

func TestNumbersAreWrittenInOneWay(t *testing.T) {
	for word, want := range map[string]int64{"0": 0, "1": 1, "10": 10, "9223372036854775807": 1<<63 - 1, "": -1, "00": -1,
		"01": -1, "+1": -1, "-1": -1, " 1": -1, "1 ": -1, "1.0": -1, "1e3": -1, "0x1": -1, "1_0": -1, "a": -1, "/": -1, ":": -1,
		"9223372036854775808": -1, "9999999999999999999": -1, "18446744073709551616": -1, "10000000000000000000000": -1} {
		if v, ok := Number([]byte(word)); ok != (want >= 0) || ok && v != want {
			t.Errorf("%q: %d, %v", word, v, ok)
		}
	}
}

func TestRowOfNumbers(t *testing.T) {
	for _, row := range []struct {
		line string
		n    int
		want string
	}{
		{"7", 1, `[7] ""`},
		{"7 9", 2, `[7 9] ""`},
		{"7 7 nonce", 2, `[7 7] "nonce"`},
		{"0 9 a b", 2, `[0 9] "a b"`},
		{"7 9 11", 2, `[7 9] "11"`},
		{"9 7", 2, "no"},
		{"7", 2, "no"},
		{"7  9", 2, "no"},
		{"", 1, "no"},
		{"-ERR x", 1, "no"},
	} {
		got := "no"
		if all, rest, ok := Row([]int64(nil), []byte(row.line), row.n); ok {
			got = fmt.Sprintf("%d %q", all, rest)
		}
		if got != row.want {
			t.Errorf("%q: %s, want %s", row.line, got, row.want)
		}
	}
}

func TestFieldsOfALine(t *testing.T) {
	got := Fields(" worker=0 text cluster=a  note=x=y owner= cluster=b")
	if want := map[string]string{"worker": "0", "cluster": "b", "note": "x=y", "owner": ""}; !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A line that is longer than the buffer costs memory only up to the limit of the Reader.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 3*maxBuffer)
	in := NewReader(strings.NewReader(long+"\r\nOK\n"+long+"x\n"), "a:1", len(long)+2)
	for _, want := range []string{long, "OK", long + "x"} {
		if line, err := in.Line(); string(line) != want || err != nil {
			t.Fatalf("%d bytes, %v", len(line), err)
		}
	}
	in = NewReader(iotest.OneByteReader(io.MultiReader(strings.NewReader(long), repeatedText("x"))), "a:1", len(long))
	if line, err := in.Line(); !errors.Is(err, ErrLong) || !errors.Is(err, ErrReply) || len(line) > len(long)+maxBuffer {
		t.Errorf("%d bytes, %v", len(line), err)
	}
}

// The error of the connection is in words, and what has come of the line is counted.
func TestEndOfTheConnection(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string
	}{{io.EOF, "connection closed by a:1"}, {os.ErrDeadlineExceeded, "no answer from a:1 in time"}} {
		in := NewReader(io.MultiReader(strings.NewReader("OK\n12"), iotest.ErrReader(row.err)), "a:1", 64)
		_, _ = in.Line()
		line, err := in.Line()
		if string(line) != "12" || err == nil || err.Error() != row.want || !errors.Is(err, row.err) || in.Bytes() != 5 {
			t.Errorf("%q, %v, %d bytes", line, err, in.Bytes())
		}
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	in := NewReader(repeatedText("2123840319823806551\r\n7 9 nonce\n"), "a:1", 4<<10)
	all, row := make([]int64, 0, 1), make([]int64, 0, 2)
	if n := testing.AllocsPerRun(500, func() {
		_, err := Numbers(in, all, 1, 1)
		line, err2 := in.Line()
		if _, _, ok := Row(row, line, 2); !ok || err != nil || err2 != nil {
			t.Fatalf("%v, %v, %q", err, err2, line)
		}
	}); n != 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}

// repeatedText is read again and again.
type repeatedText string

func (r repeatedText) Read(b []byte) (n int, err error) {
	for n+len(r) <= len(b) {
		n += copy(b[n:], r)
	}
	return n, nil
}

// FuzzReader: the bytes of a node give the same replies however they are cut into reads. A reply of numbers has as many
// as were asked for. An error reply is passed on unchanged, and makes no client wait for more than an hour.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"1\n2\r\n3\n", "1 2 3\n", "-BUSY retry_after_ms=5\n", "1\n-ERR reason=too-many\n0\n", "0\n",
		"+1\n", "-CLOCK retry_after_ms=99999999999999\n", "-\n", "- x\n", "3 2 1\n", "1 9 o\n", "9223372036854775808\n",
		strings.Repeat("1", 70)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, said string) {
		const most = 64
		whole := NewReader(strings.NewReader(said), "a:1", most)
		bytewise := NewReader(iotest.OneByteReader(strings.NewReader(said)), "a:1", most)
		lines := bufio.NewScanner(strings.NewReader(said))
		for i := 0; ; i++ {
			n := 1 + i%2
			got, err := Numbers(whole, []int64(nil), n, 0)
			again, err2 := Numbers(bytewise, []int64(nil), n, 0)
			if outcome(got, err) != outcome(again, err2) || !slices.Equal(got, again) {
				t.Fatalf("%q gives %d, %v in one piece, %d, %v in bytes", said, got, err, again, err2)
			}
			refused, is := errors.AsType[*ids.ReplyError](err)
			switch {
			case err == nil && (len(got) != n || slices.Min(got) < 0):
				t.Fatalf("%q gives %d instead of %d", said, got, n)
			case err != nil && !is:
				return
			}
			for range max(len(got), 1) {
				lines.Scan()
			}
			if !is {
				continue
			}
			if again := Refusal("a:1", refused.Line()); refused.Text != "" && again.Error() != refused.Error() ||
				strings.TrimSpace(refused.Line()) != strings.TrimSpace(lines.Text()) {
				t.Fatalf("%q: %q became %q", said, lines.Text(), refused.Line())
			}
			if d := refused.RetryAfter(); d < 0 || d > time.Hour || strings.ContainsAny(refused.Reason(), " \t") {
				t.Fatalf("%q: %v, %q", said, d, refused.Reason())
			}
		}
	})
}
