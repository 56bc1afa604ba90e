package lineproto

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

var httpMethods = []string{"POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "PRI"}

// isHTTP reports whether a line that was refused looks like HTTP. It may come from a
// browser, a health check or a scraper with the wrong port. A web page may also make
// browsers post here. Valid requests are never passed to isHTTP, so none is taken for
// HTTP.
func isHTTP(line []byte) bool {
	line, _, _ = bytes.Cut(line, []byte{0}) // how much follows a NUL depends on how the input was cut into reads
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

// otherProtocols are the beginnings of what clients of other protocols than HTTP send, and the replies. The
// connection is closed: a proxy waits for no reply to its header, so all later replies would be one off.
var otherProtocols = []struct {
	begin string
	reply *ids.ReplyError
}{
	{"PROXY TCP4 ", errProxy},
	{"PROXY TCP6 ", errProxy},
	{"PROXY UNKNOWN", errProxy},
	{proxyV2, errProxy},
	{proxyV2End, errProxy}, // the empty lines before have been ignored
	{"\x16\x03", errTLS},   // a TLS record with a handshake
}

// proxyV2 is the beginning of the header of the PROXY protocol, version 2.
const (
	proxyV2    = "\r\n\r\n" + proxyV2End
	proxyV2End = "\x00\r\nQUIT\n"
)

var (
	errProxy = replies.New(ids.ERR, "PROXY protocol is not supported. Turn it off at the proxy "+
		"(send-proxy, send-proxy-v2, proxy_protocol_v2.enabled)")
	errTLS = replies.New(ids.ERR, "this port does not use TLS. Connect without TLS, or give the node a certificate")
)

// otherProtocol returns the reply to input that was refused and begins as another protocol, or else nil.
func otherProtocol(input []byte) *ids.ReplyError {
	for _, p := range otherProtocols {
		if len(input) >= len(p.begin) && string(input[:len(p.begin)]) == p.begin {
			return p.reply
		}
	}
	return nil
}

// appendHTTP appends the answer to an HTTP request. The caller must close the
// connection after it.
func appendHTTP(out []byte, hint string) []byte {
	body := "This port speaks flaked's line protocol, not HTTP: send GET and a line feed, read an ID.\n"
	if hint != "" {
		body += replies.OneLine(hint) + "\n"
	}
	out = append(out, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"+
		"Content-Length: "...)
	out = strconv.AppendInt(out, int64(len(body)), 10)
	out = append(out, "\r\n\r\n"...)
	return append(out, body...)
}
