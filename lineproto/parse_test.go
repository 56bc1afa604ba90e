package lineproto

import (
	"math"
	"strings"
	"testing"
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

func TestIsTag(t *testing.T) {
	for _, good := range []string{"a", "Z", "order", "a1", "a_.:-Z9", strings.Repeat("k", 64)} {
		if !isTag([]byte(good)) {
			t.Errorf("%q is refused", good)
		}
	}
	for _, bad := range []string{"", "1a", "_a", "-a", ".a", ":a", "a/b", "a b", "a\r", "a@", "a[", "a`", "a{",
		"\xe9", "a\xe9", strings.Repeat("k", 65)} {
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
