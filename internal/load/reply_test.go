package load

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const anID = "2123840256405929993"

func lines(ids ...string) string { return strings.Join(ids, "\n") + "\n" }

func bulks(ids ...string) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(id), id)
	}
	return b.String()
}

// takeAll passes the input to a parser in two parts, as connections do, and returns the
// replies that the parser found.
func takeAll(p parser, input string, cut int) (taken, error) {
	t := taken{errors: map[string]int64{}}
	rest := ""
	for _, part := range []string{input[:cut], input[cut:]} {
		rest += part
		used, err := p.take([]byte(rest), &t)
		if err != nil {
			return t, err
		}
		rest = rest[used:]
	}
	if rest != "" {
		return t, fmt.Errorf("%q is left", rest)
	}
	return t, nil
}

func TestReplies(t *testing.T) {
	plain, resp := parser{batch: 1, check: true}, parser{resp: true, batch: 1, check: true}
	three, respThree := parser{batch: 3, check: true}, parser{resp: true, batch: 3, check: true}
	fast := parser{batch: 1}
	other, respOther := parser{batch: 1, command: true}, parser{resp: true, batch: 1, command: true}
	for _, row := range []struct {
		name   string
		parser parser
		input  string
		good   int
		errors map[string]int64
		ids    int
	}{
		{"an ID", plain, lines(anID), 1, nil, 1},
		{"IDs", plain, lines(anID, "7", "9223372036854775807"), 3, nil, 3},
		{"CRLF", plain, anID + "\r\n" + "12\r\n", 2, nil, 2},
		{"an error among IDs", plain, lines(anID, "-CLOCK back behind_ms=3", "8"), 2, map[string]int64{"CLOCK": 1}, 2},
		{"a batch", three, lines("1", "2", "3", anID, "5", "6"), 2, nil, 6},
		{"an error for a batch", three, lines("-ERR count", "1", "2", "3"), 1, map[string]int64{"ERR": 1}, 3},
		{"not looked at", fast, lines(anID, "5", anID), 3, nil, 0},
		{"not looked at, an error", fast, lines(anID, "-BUSY limit", anID), 2, map[string]int64{"BUSY": 1}, 0},
		{"not looked at, a batch", parser{batch: 3}, lines("1", "2", "3", "4", "5", "6"), 2, nil, 0},
		{"memcached", other, "5\r\n6\r\n", 2, nil, 0},
		{"memcached has no key", other, "5\r\nNOT_FOUND\r\nCLIENT_ERROR no number\r\nSTORED\r\n", 2, map[string]int64{"NOT_FOUND": 1, "CLIENT_ERROR": 1}, 0},

		{"a bulk", resp, bulks(anID, "12"), 2, nil, 2},
		{"an error in RESP", resp, bulks(anID) + "-NOTREADY starting\r\n" + bulks(anID), 2, map[string]int64{"NOTREADY": 1}, 2},
		{"an array", respThree, "*3\r\n" + bulks("1", anID, "3") + "*3\r\n" + bulks("4", "5", "6"), 2, nil, 6},
		{"an error for an array", respThree, "-ERR count\r\n*3\r\n" + bulks("1", "2", "3"), 1, map[string]int64{"ERR": 1}, 3},
		{"redis", respOther, ":1\r\n:2\r\n+OK\r\n$-1\r\n*-1\r\n*0\r\n-ERR what\r\n", 6, map[string]int64{"ERR": 1}, 0},
		{"redis, nested", respOther, "*2\r\n*2\r\n:1\r\n:2\r\n$3\r\na\nb\r\n%1\r\n+k\r\n*1\r\n_\r\n", 2, nil, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			for cut := range len(row.input) {
				got, err := takeAll(row.parser, row.input, cut)
				if err != nil {
					t.Fatalf("cut at %d: %v", cut, err)
				}
				ids := 0
				for _, s := range got.stretches {
					ids += int(s.n)
				}
				if got.good != row.good || !maps.Equal(got.errors, row.errors) || ids != row.ids {
					t.Fatalf("cut at %d: %d good, errors %v, %d IDs; want %d, %v, %d", cut, got.good, got.errors, ids, row.good, row.errors, row.ids)
				}
				if bad := got.replies - got.good; bad != int(sum(row.errors)) {
					t.Fatalf("cut at %d: %d replies were no good ones", cut, bad)
				}
			}
		})
	}
}

func sum(errors map[string]int64) int64 {
	return (&Result{Errors: errors}).ErrorCount()
}

func TestMalformedRepliesAreErrors(t *testing.T) {
	plain, resp := parser{batch: 1, check: true}, parser{resp: true, batch: 1, check: true}
	for _, row := range []struct {
		name   string
		parser parser
		input  string
	}{
		{"text", plain, "hello\n"},
		{"nothing", plain, "\n"},
		{"a sign", plain, "+5\n"},
		{"too large", plain, "9223372036854775808\n"},
		{"too long", plain, "21238402564059299930\n"},
		{"not all digits", plain, "212384025640592999x\n"},
		{"a dash alone", plain, "-\n"},
		{"HTTP", plain, "HTTP/1.1 400 Bad Request\r\n"},
		{"an error in a batch", parser{batch: 2, check: true}, "1\n-ERR\n"},
		{"a line that does not end", plain, strings.Repeat("1", maxValue+1)},
		{"HTTP, not looked at", parser{batch: 1}, "HTTP/1.1 400 Bad Request\r\n"},
		{"a line for RESP", resp, "5\r\n"},
		{"LF alone", resp, "$1\n5\r\n"},
		{"an empty line for RESP", resp, "\r\n"},
		{"a bulk of letters", resp, "$1\r\nx\r\n"},
		{"a null", resp, "$-1\r\n"},
		{"an array for an ID", resp, "*1\r\n$1\r\n5\r\n"},
		{"an ID for an array", parser{resp: true, batch: 2, check: true}, bulks(anID)},
		{"a short array", parser{resp: true, batch: 3, check: true}, "*2\r\n" + bulks("1", "2")},
		{"an error in an array", parser{resp: true, batch: 2, check: true}, "*2\r\n-ERR x\r\n"},
		{"a huge bulk", parser{resp: true, batch: 1, command: true}, "$99999999\r\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, cut := range []int{0, 1, len(row.input) / 2} {
				if got, err := takeAll(row.parser, row.input, cut); !errors.Is(err, errReply) {
					t.Errorf("cut at %d: %+v, %v", cut, got, err)
				}
			}
		})
	}
}

func TestNineteenDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strconv.FormatInt(rapid.Int64Range(1e18, math.MaxInt64).Draw(t, "id"), 10)
		want, _ := strconv.ParseInt(text, 10, 64)
		if got, ok := nineteen([]byte(text)); !ok || got != want {
			t.Fatalf("%s: %d, %t", text, got, ok)
		}
		spoiled := []byte(text)
		at := rapid.IntRange(0, 18).Draw(t, "at")
		if spoiled[at] = rapid.Byte().Draw(t, "byte"); spoiled[at] < '0' || spoiled[at] > '9' {
			if got, ok := nineteen(spoiled); ok {
				t.Fatalf("%q: %d", spoiled, got)
			}
		}
	})
	if got, ok := nineteen([]byte("9223372036854775808")); ok {
		t.Errorf("over 63 bits: %d", got)
	}
}

func BenchmarkTakeLines(b *testing.B) {
	input := []byte(strings.Repeat(anID+"\n", 100))
	for _, row := range []struct {
		name   string
		parser parser
		input  []byte
	}{
		{"checked", parser{batch: 1, check: true}, input},
		{"counted", parser{batch: 1}, input},
		{"RESP", parser{resp: true, batch: 1, check: true}, []byte(strings.Repeat(bulks(anID), 100))},
	} {
		b.Run(row.name, func(b *testing.B) {
			t := taken{errors: map[string]int64{}}
			for range b.N {
				t.stretches = t.stretches[:0]
				_, _ = row.parser.take(row.input, &t)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/reply")
		})
	}
}

// A parser finds the same replies, or an error, wherever the input is cut.
func TestRepliesInPieces(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		anID + "\n", "7\r\n", "-ERR x\n", "-BUSY\r\n", bulks(anID), bulks("7"), "*2\r\n", "*-1\r\n", "$-1\r\n", ":5\r\n", "+OK\r\n", "%1\r\n",
		"$19\r\n", "\r\n", "\n", "$", "-", "5", "x",
	})
	rapid.Check(t, func(t *rapid.T) {
		p := parser{
			resp: rapid.Bool().Draw(t, "resp"), command: rapid.Bool().Draw(t, "command"),
			batch: rapid.IntRange(1, 3).Draw(t, "batch"),
		}
		if p.command {
			p.batch = 1
		}
		p.check = !p.command
		input := strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "input"), "")
		whole, err := takeAll(p, input, 0)
		cut := rapid.IntRange(0, len(input)).Draw(t, "cut")
		parts, err2 := takeAll(p, input, cut)
		if errors.Is(err, errReply) != errors.Is(err2, errReply) {
			t.Fatalf("%q: %v in one piece, %v cut at %d", input, err, err2, cut)
		}
		if err == nil && (whole.good != parts.good || whole.replies != parts.replies || !maps.Equal(whole.errors, parts.errors)) {
			t.Fatalf("%q: %+v in one piece, %+v cut at %d", input, whole, parts, cut)
		}
	})
}
