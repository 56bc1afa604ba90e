package coordinator

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func reply(n int) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(n)), make([]byte, n)...)
}

// through sends what a server says in two writes, split at one byte, and
// returns what the client reads, all reports, and the error that ends it.
func through(t *testing.T, said []byte, split int) (got []byte, reports []error, err error) {
	t.Helper()
	client, server := net.Pipe()
	go func() {
		_, _ = server.Write(said[:split])
		_, _ = server.Write(said[split:])
		_ = server.Close()
	}()
	w := &wireConn{Conn: client, by: time.Now().Add(10 * time.Second), report: func(err error) { reports = append(reports, err) }}
	defer w.Close()
	got, err = io.ReadAll(w)
	return got, reports, err
}

func TestWire(t *testing.T) {
	hello := greet(7, 4000)
	old := append(append([]byte{}, hello[:3]...), append([]byte{minGreeting}, hello[4:len(hello)-1]...)...) // ZooKeeper 3.3
	expired := greet(0, 0)
	for _, tc := range []struct {
		name    string
		said    []byte
		session bool   // the greeting is of one
		want    string // part of the error; "" when all is well until the end
	}{
		{"greeting", hello, true, ""},
		{"greeting without the read-only flag", old, true, ""},
		{"greeting of an expired session", expired, false, ""},
		{"replies", append(append(append([]byte{}, hello...), reply(16)...), reply(300)...), true, ""},
		{"end in a header", append(append([]byte{}, hello...), 0, 0), true, ""},
		{"nothing", nil, false, "without a ZooKeeper's greeting"},
		{"half a greeting", hello[:20], false, "without a ZooKeeper's greeting"},
		{"HTTP", []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), false, `begins with "HTTP"`},
		{"a short greeting", reply(minGreeting - 1), false, "not a ZooKeeper"},
		{"a long greeting", reply(maxGreeting + 1), false, "not a ZooKeeper"},
		{"no session timeout", greet(7, 0), false, "session timeout of 0 ms"},
		{"a negative session timeout", greet(7, 1<<31), false, "session timeout of -2147483648 ms"},
		{"a short reply", append(append([]byte{}, hello...), reply(15)...), true, "reply of 15 bytes"},
		{"an empty reply", append(append(append([]byte{}, hello...), reply(16)...), reply(0)...), true, "reply of 0 bytes"},
		{"a reply too long", append(append([]byte{}, hello...), 0xff, 0xff, 0xff, 0xff), true, "reply of 4294967295 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for split := range len(tc.said) + 1 {
				got, reports, err := through(t, tc.said, split)
				if tc.session { // reported before the reason that ends it
					if len(reports) == 0 || reports[0] != nil {
						t.Fatalf("split at %d: reported %v, want nil first", split, reports)
					}
					reports = reports[1:]
				}
				if len(reports) != 1 {
					t.Fatalf("split at %d: reported %v, want one reason", split, reports)
				}
				reported := reports[0]
				if tc.want == "" {
					if err != nil || string(got) != string(tc.said) {
						t.Fatalf("split at %d: got %q, %v, want %q", split, got, err, tc.said)
					}
					if !errors.Is(reported, io.EOF) {
						t.Fatalf("split at %d: reported %v", split, reported)
					}
					continue
				}
				if err == nil || reported != err || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("split at %d: got %v, reported %v, want %q", split, err, reported, tc.want)
				}
				if !strings.HasPrefix(string(tc.said), string(got)) {
					t.Fatalf("split at %d: read %q of %q", split, got, tc.said)
				}
			}
		})
	}
}

func TestWireWriteEndsTheConnection(t *testing.T) {
	client, server := net.Pipe()
	_ = server.Close()
	var reported error
	w := &wireConn{Conn: client, report: func(err error) { reported = err }}
	if n, err := w.Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("Write gave %d, %v", n, err)
	}
	if !errors.Is(reported, io.ErrClosedPipe) {
		t.Errorf("reported %v", reported)
	}
	if _, err := client.Write(nil); err == nil {
		t.Error("the connection is open")
	}
}
