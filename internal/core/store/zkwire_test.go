package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func reply(n int) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(n)), make([]byte, n)...)
}

// through sends the bytes of said to a client in two writes, the first of split bytes. It
// returns the bytes that the client reads, the error that ends its reading, and the failure
// of the connection.
func through(t *testing.T, said []byte, split int) ([]byte, error, error) {
	t.Helper()
	client, server := net.Pipe()
	go func() {
		_, _ = server.Write(said[:split])
		_, _ = server.Write(said[split:])
		_ = server.Close()
	}()
	w := newWireConn(client, time.Now().Add(10*time.Second))
	defer w.Close()
	got, err := io.ReadAll(w)
	return got, err, w.failure()
}

// forLibrary returns what a server has said, without replies to multi-reads, and without the last reply if its xid is
// incomplete.
func forLibrary(said []byte) []byte {
	var got []byte
	for first := true; len(said) >= 8; first = false {
		whole := min(len(said), 4+int(binary.BigEndian.Uint32(said)))
		if first || int32(binary.BigEndian.Uint32(said[4:])) > firstReadXid {
			got = append(got, said[:whole]...)
		}
		said = said[whole:]
	}
	return got
}

// FuzzWire: go-zookeeper gets the bytes of a server as they are, however they are cut into reads, up to the first reply
// or greeting that it could not stand.
func FuzzWire(f *testing.F) {
	f.Add(append(greet(7, 4000), reply(16)...), uint16(30))
	f.Add(append(greet(0, 0), reply(300)...), uint16(350))
	f.Add(append(append(greet(7, 4000), reply(20)...), 0, 0, 0, 1), uint16(41))
	f.Add(append(greet(7, 4000), 0), uint16(41))
	f.Add(append(append(greet(7, 4000), 0, 0, 0, 16, 0x80, 0, 0, 1), reply(28)...), uint16(41))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), uint16(1))
	f.Fuzz(func(t *testing.T, said []byte, split uint16) {
		got, err, _ := through(t, said, len(said))
		if cut, err2, _ := through(t, said, min(int(split), len(said))); fmt.Sprint(err) != fmt.Sprint(err2) ||
			err == nil && string(cut) != string(got) {
			t.Fatalf("%q, %v in one piece, %q, %v in two", got, err, cut, err2)
		}
		if want := forLibrary(said); !bytes.HasPrefix(want, got) || err == nil && len(got) < len(want) {
			t.Fatalf("%q became %q, %v", said, got, err)
		}
		for rest, first := got, true; len(rest) >= 4; first = false {
			n := binary.BigEndian.Uint32(rest)
			if n < 16 || n > maxReply || first && (n < minGreeting || n > maxGreeting) {
				t.Fatalf("%q was passed on", rest)
			}
			rest = rest[min(len(rest), 4+int(n)):]
		}
	})
}

func TestInvalidGreetingOrReplyEndsTheConnection(t *testing.T) {
	hello := greet(7, 4000)
	// of ZooKeeper 3.3
	old := append(append([]byte{}, hello[:3]...), append([]byte{minGreeting}, hello[4:len(hello)-1]...)...)
	expired := greet(0, 0)
	for _, tc := range []struct {
		name string
		said []byte
		want string // part of the error; "" when all is well until the end
	}{
		{"greeting", hello, ""},
		{"greeting without the read-only flag", old, ""},
		{"greeting of an expired session", expired, ""},
		{"replies", append(append(append([]byte{}, hello...), reply(16)...), reply(300)...), ""},
		{"nothing", nil, "EOF"},
		{"half a greeting", hello[:20], "unexpected EOF"},
		{"HTTP", []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), `begins with "HTTP"`},
		{"a short greeting", reply(minGreeting - 1), "not a ZooKeeper"},
		{"a long greeting", reply(maxGreeting + 1), "not a ZooKeeper"},
		{"no session timeout", greet(7, 0), "session timeout of 0 ms"},
		{"a negative session timeout", greet(7, 1<<31), "session timeout of -2147483648 ms"},
		{"a short reply", append(append([]byte{}, hello...), reply(15)...), "reply of 15 bytes"},
		{"an empty reply", append(append(append([]byte{}, hello...), reply(16)...), reply(0)...), "reply of 0 bytes"},
		{"a reply too long", append(append([]byte{}, hello...), 0xff, 0xff, 0xff, 0xff), "reply of 4294967295 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for split := range len(tc.said) + 1 {
				got, err, reported := through(t, tc.said, split)
				if tc.want == "" {
					if err != nil || string(got) != string(tc.said) {
						t.Fatalf("split at %d: got %q, %v, want %q", split, got, err, tc.said)
					}
					if !errors.Is(reported, io.EOF) {
						t.Fatalf("split at %d: reported %v", split, reported)
					}
					continue
				}
				ends := errors.Is(reported, io.EOF) && err == nil // ReadAll does not return it
				if reported != err && !ends || reported == nil || !strings.Contains(reported.Error(), tc.want) {
					t.Fatalf("split at %d: got %v, reported %v, want %q", split, err, reported, tc.want)
				}
				if !strings.HasPrefix(string(tc.said), string(got)) {
					t.Fatalf("split at %d: read %q of %q", split, got, tc.said)
				}
			}
		})
	}
}

// A reply is passed on when its size and xid are known.
func TestEndWithinAReply(t *testing.T) {
	for n := range 8 {
		hello := string(greet(7, 4000))
		got, _, reported := through(t, append([]byte(hello), reply(16)[:n]...), 0)
		if string(got) != hello || !errors.Is(reported, io.EOF) {
			t.Errorf("after %d bytes of a reply: got %q, reported %v", n, got, reported)
		}
	}
}

// The library learns from Read that the connection has ended, see wireConn.
func TestFailedWriteEndsTheConnection(t *testing.T) {
	client, server := net.Pipe()
	_ = server.Close()
	w := newWireConn(client, time.Time{})
	n, err := w.Write([]byte("abc"))
	if n != 3 || err != nil || !errors.Is(w.failure(), io.ErrClosedPipe) {
		t.Errorf("Write: %d, %v, the connection ended by %v", n, err, w.failure())
	}
	if _, err := w.Read(make([]byte, 1)); err == nil {
		t.Error("Read succeeds after that")
	}
	if err := w.send([]byte("abc")); err == nil {
		t.Error("send succeeds after that")
	}
	select {
	case <-w.gone:
	default:
		t.Error("the connection is not gone")
	}
	if _, err := client.Write(nil); err == nil {
		t.Error("the connection is open")
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close after that: %v", err)
	}
}

func TestClosedConnectionHasNoFailure(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := newWireConn(client, time.Time{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.send([]byte("abc")); err == nil || w.failure() != nil {
		t.Errorf("send: %v, the connection ended by %v", err, w.failure())
	}
}

func TestSilenceCountsFromTheLastReadOrTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		w := newWireConn(client, time.Now().Add(time.Hour))
		defer w.Close()
		w.greeted = true
		asked := time.Now()
		time.Sleep(3 * time.Second)
		if quiet := w.quietSince(asked); quiet != 3*time.Second {
			t.Errorf("quiet for %s before anything was read", quiet)
		}
		go func() { _, _ = server.Write(reply(16)) }()
		if _, err := io.ReadFull(w, make([]byte, 20)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if quiet := w.quietSince(asked); quiet != time.Second {
			t.Errorf("quiet for %s, a second after a reply", quiet)
		}
		if quiet := w.quietSince(time.Now()); quiet != 0 {
			t.Errorf("quiet for %s, just after a request", quiet)
		}
	})
}
