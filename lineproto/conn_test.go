package lineproto

import (
	"io"
	"net"
	"strings"
	"testing"
)

// TestLastReplyArrivesBeforeClose: the last replies arrive although the client goes on sending. The
// server must not reset the connection.
func TestLastReplyArrivesBeforeClose(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		for in, out := range map[string]string{
			"QUIT\n":                  "1000\n",
			"\x00":                    "1000\n-ERR request contains a NUL byte\n",
			strings.Repeat("x", 2000): "1000\n" + tooLong,
			"POST / HTTP/1.1\r\n\r\n": "1000\n" + http400,
			"*1\r\n$x\r\n":            "1000\n" + badBulk,
			"*1\r\n$4\r\nQUIT\r\n":    "1000\n+OK\r\n",
		} {
			r := w.serve(t, Config{AdminHint: hint})
			c := r.dial(t)
			c.send("GET\n" + in + strings.Repeat("more\n", 100_000))
			got, err := io.ReadAll(c)
			if err != nil || string(got) != out {
				t.Errorf("%.20q: got %.200q, %v, want %q", in, got, err, out)
			}
			c.Close()
		}
	})
}

// discardConn discards everything that is written to it.
type discardConn struct{ net.Conn }

func (discardConn) Write(b []byte) (int, error) { return len(b), nil }
