package lineproto

import (
	"strings"
	"testing"
)

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

// A stretch of GETs in either framing ends before a request that is nearly one, and is answered as its requests one by
// one.
func TestStretchesEndBeforeOtherRequests(t *testing.T) {
	key := request("GET", "key:000000000001")
	pieces := []string{
		"GET\n", "GET\r\n", "get\ngEt\n", "GET \n", "GET\r\r\n", "\nGET\n", "gdt\n", "\x07\x05\x14\n", "GET*\n", "GET",
		"GET\r", strings.Repeat("GET\n", maxBare+1), strings.Repeat("GET\r\n", maxBare+1),
		getArray, request("get") + request("gEt", "a"), key, request("GET", x512[:99]), request("GET", x512[:100]),
		request("GET", "5"), request("GET", ""), request("GET", "a/b\r\n"), request("GET", "a", "b"),
		request("GET", "a", "COUNT", "2"), request("GDT"), strings.Repeat(key+getArray, maxBare), getArray[:12],
		key[:len(key)-1], "*1\r\n$3\r\nGET\r\r", "*2\r\n$3\r\nGET\r\n$01\r\na\r\n",
		"*2\r\n$3\r\nGET\r\n$1:\r\naaaaaaaaaaaaaaaaaaaa\r\n", "*2\r\n$3\r\nGET\r\n$/\r\na\r\n",
		"*2\r\n$3\r\nGET\r\n$1\r\n", "*2\r\n$3\r\nGET\r\n$1\r\na\rx",
	}
	b := &fakeBackend{}
	s := newTestServer(t, Config{Backend: b})
	for _, first := range pieces {
		for _, second := range pieces {
			in := first + second
			b.last.Store(0)
			together, closed := talk(s, in)
			b.last.Store(0)
			if alone, ended := talk(s, bytewise(in)...); together != alone || closed != ended {
				t.Errorf("%.50q, %.50q: got %.100q, closed %v; byte by byte %.100q, %v", first, second, together, closed,
					alone, ended)
			}
		}
	}
}
