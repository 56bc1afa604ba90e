package lineproto

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/flaked/flaked/ids"
)

var httpMethods = []string{"POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "PRI"}

// isHTTP reports whether a line that was refused looks like HTTP. It may come from a
// browser, a health check or a scraper with the wrong port. A web page may also make
// browsers post here. Valid requests are never passed to isHTTP, so none is taken for
// HTTP.
func isHTTP(line []byte) bool {
	verb, rest := cutWord(line)
	if equalFold(verb, "GET") && bytes.HasPrefix(rest, []byte("/")) || equalFold(verb, "HOST:") {
		return true
	}
	if slices.ContainsFunc(httpMethods, func(m string) bool { return equalFold(verb, m) }) {
		return true
	}
	i := bytes.LastIndexAny(rest, " \t")
	return bytes.HasPrefix(rest[i+1:], []byte("HTTP/"))
}

// errProxyHeader is the reply to a header of the PROXY protocol. The connection is closed: the
// proxy waits for no reply to its header, so all later replies would be one off.
var errProxyHeader = ids.Reply(ids.ERR, "PROXY protocol is not supported. Turn it off at the proxy (send-proxy)")

// isProxyHeader reports whether a line is the header of the PROXY protocol, version 1.
func isProxyHeader(line []byte) bool {
	return bytes.HasPrefix(line, []byte("PROXY TCP4 ")) || bytes.HasPrefix(line, []byte("PROXY TCP6 ")) ||
		bytes.HasPrefix(line, []byte("PROXY UNKNOWN"))
}

// appendHTTP appends the answer to an HTTP request. The caller must close the
// connection after it.
func appendHTTP(out []byte, hint string) []byte {
	body := "This port speaks flaked's line protocol, not HTTP: send GET and a line feed, read an ID.\n"
	if hint != "" {
		body += oneLine(hint) + "\n"
	}
	out = append(out, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"+
		"Content-Length: "...)
	out = strconv.AppendInt(out, int64(len(body)), 10)
	out = append(out, "\r\n\r\n"...)
	return append(out, body...)
}

// equalFold reports whether two ASCII strings are equal, ignoring case. Letters of want
// must be upper case.
func equalFold(got []byte, want string) bool {
	if len(got) != len(want) {
		return false
	}
	for i, c := range got {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != want[i] {
			return false
		}
	}
	return true
}
