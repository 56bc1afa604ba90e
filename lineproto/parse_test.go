package lineproto

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flaked/flaked/worker"
)

func TestNumber(t *testing.T) {
	for _, tc := range []struct {
		in string
		n  int64
		ok bool
	}{
		{"1", 1, true},
		{"10", 10, true},
		{"9223372036854775807", math.MaxInt64, true},
		{"9223372036854775808", 0, false},
		{"9223372036854775810", 0, false},
		{"18446744073709551617", 0, false},
		{strings.Repeat("9", 100), 0, false},
		{"", 0, false}, {"0", 0, false}, {"00", 0, false}, {"01", 0, false},
		{"+1", 0, false}, {"-1", 0, false}, {" 1", 0, false}, {"1 ", 0, false},
		{"1.0", 0, false}, {"1e3", 0, false}, {"0x1", 0, false}, {"1_0", 0, false},
		{"1:", 0, false}, {"1/", 0, false}, {"\xb1", 0, false},
	} {
		n, ok := number([]byte(tc.in))
		if ok != tc.ok || ok && n != tc.n {
			t.Errorf("number(%q) = %d, %v, want %d, %v", tc.in, n, ok, tc.n, tc.ok)
		}
	}
}

func TestNumberProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.StringMatching(`[0-9]{1,21}`), rapid.String()).Draw(t, "s")
		n, ok := number([]byte(s))
		want, err := strconv.ParseInt(s, 10, 64)
		good := err == nil && want > 0 && s == strconv.FormatInt(want, 10)
		if ok != good || ok && n != want {
			t.Fatalf("number(%q) = %d, %v; ParseInt says %d, %v", s, n, ok, want, err)
		}
	})
}

func TestIsTag(t *testing.T) {
	for _, good := range []string{"a", "Z", "order", "a1", "a_.:-Z9", strings.Repeat("k", 64)} {
		if !isTag([]byte(good)) {
			t.Errorf("%q is refused", good)
		}
	}
	for _, bad := range []string{"", "1a", "_a", "-a", ".a", ":a", "a/b", "a b", "a\r", "a@", "a[", "a`", "a{", "\xe9", "a\xe9", strings.Repeat("k", 65)} {
		if isTag([]byte(bad)) {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestTagBytes checks for each byte whether a tag may begin with it or hold it.
func TestTagBytes(t *testing.T) {
	const first = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for c := range 256 {
		b := byte(c)
		if got := isTag([]byte{b}); got != (strings.IndexByte(first, b) >= 0) {
			t.Errorf("%q begins a tag: %v", b, got)
		}
		if got := isTag([]byte{'a', b, 'z'}); got != (strings.IndexByte(first+"0123456789_.:-", b) >= 0) {
			t.Errorf("%q within a tag: %v", b, got)
		}
	}
}

func TestBareGETs(t *testing.T) {
	for _, tc := range []struct {
		in          string
		count, used int
		crlf        bool
	}{
		{"GET\n", 1, 4, false},
		{"GET\r\n", 1, 5, true},
		{"get\ngEt\nGET", 2, 8, false},
		{"GET\nGET\r\n", 1, 4, false},
		{"GET\r\nGET\n", 1, 5, true},
		{"GET\r\nGET\r", 1, 5, true},
		{"GET", 0, 0, false},
		{"GET\r", 0, 0, false},
		{"GET \n", 0, 0, false},
		{"GET\r\r\n", 0, 0, false},
		{"\nGET\n", 0, 0, false},
		{"gdt\n", 0, 0, false},
		{"\x07\x05\x14\n", 0, 0, false},
		{"GET*", 0, 0, false},
		{strings.Repeat("GET\n", 300), maxBare, 4 * maxBare, false},
		{strings.Repeat("GET\r\n", 300), maxBare, 5 * maxBare, true},
	} {
		var p plain
		count, used := p.bareGETs([]byte(tc.in))
		if count != tc.count || used != tc.used || p.crlf != tc.crlf {
			t.Errorf("%.20q: %d, %d, crlf %v, want %d, %d, %v", tc.in, count, used, p.crlf, tc.count, tc.used, tc.crlf)
		}
	}
}

// TestIDs: counting decimals up gives the same bytes as formatting each.
func TestIDs(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, r worker.Run, end string) {
		var want []byte
		for i := range r.Len {
			want = append(append(want, r.At(i).String()...), end...)
		}
		if got := lines(end).ids([]byte("x"), r); string(got) != "x"+string(want) {
			t.Fatalf("%+v: got %q, want %q", r, got[1:], want)
		}
		want = want[:0]
		for i := range r.Len {
			want = append(want, bulk(r.At(i).String())...)
		}
		if got := resp2.ids([]byte("x"), r); string(got) != "x"+string(want) {
			t.Fatalf("%+v: got %q, want %q", r, got[1:], want)
		}
	}
	check(t, worker.Run{}, "\n")
	check(t, worker.Run{First: 1, Step: 1, Len: 1200}, "\n")
	check(t, worker.Run{First: math.MaxInt64 - 10, Step: 1, Len: 11}, "\r\n")
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "len")
		step := rapid.SampledFrom([]worker.ID{1, 1, 2, 1024}).Draw(t, "step")
		nines := int64(math.Pow10(rapid.IntRange(1, 18).Draw(t, "digits")))
		first := rapid.OneOf(rapid.Int64Range(1, math.MaxInt64/2), rapid.Int64Range(max(1, nines-300), nines)).Draw(t, "first")
		check(t, worker.Run{First: worker.ID(first), Step: step, Len: n}, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end"))
	})
}
