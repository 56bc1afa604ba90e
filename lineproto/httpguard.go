package lineproto

import (
	"bytes"
	"strconv"
)

var httpMethods = [...]string{"POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "PRI"}

// isHTTP reports whether a line that is not a good request looks like HTTP: a
// browser, a health check or a scrape that was given the wrong port, or a
// browser that somebody's page made to post here. It is asked about refused
// lines only, so no good request is ever taken for HTTP.
func isHTTP(line []byte) bool {
	verb, rest := cutWord(line)
	if equalFold(verb, "GET") && bytes.HasPrefix(rest, []byte("/")) || equalFold(verb, "HOST:") {
		return true
	}
	for _, m := range httpMethods {
		if equalFold(verb, m) {
			return true
		}
	}
	i := bytes.LastIndexAny(rest, " \t")
	return bytes.HasPrefix(rest[i+1:], []byte("HTTP/"))
}

// appendHTTP appends the answer to an HTTP request, which the connection is
// closed after.
func appendHTTP(out []byte, hint string) []byte {
	body := "This port speaks flaked's line protocol, not HTTP: send GET and a line feed, read an ID.\n"
	if hint != "" {
		body += oneLine(hint) + "\n"
	}
	out = append(out, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: "...)
	out = strconv.AppendInt(out, int64(len(body)), 10)
	out = append(out, "\r\n\r\n"...)
	return append(out, body...)
}

// equalFold compares ASCII without case; want is upper case where it is a letter.
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
