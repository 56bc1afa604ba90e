package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// GetAll reads many records in a few requests, and each as Get does.
func TestManyRecordsInFewRequests(t *testing.T) {
	z := newZK(t, ZKConfig{Connect: zktest.Single(t).Addr()})
	if err := z.EnsureRoot(t.Context()); err != nil {
		t.Fatal(err)
	}
	var paths []string
	var ops []Op
	for i := range 2*mostInRead + 1 {
		paths = append(paths, fmt.Sprintf("/%03d", i))
		if i%3 != 0 {
			ops = append(ops, CreateOp{Path: paths[i], Data: make([]byte, i%5)})
		}
	}
	if err := z.Multi(t.Context(), append(ops, SetOp{paths[1], []byte("again"), 0})...); err != nil {
		t.Fatal(err)
	}
	got, err := z.GetAll(t.Context(), paths...)
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range paths {
		data, stat, err := z.Get(t.Context(), path)
		want := Record{Found: err == nil, Data: data, Stat: stat}
		if len(got[i].Data)+len(data) == 0 { // nil or empty
			got[i].Data, want.Data = nil, nil
		}
		if !reflect.DeepEqual(got[i], want) || want.Found != (i%3 != 0) {
			t.Errorf("%s is %+v, Get says %+v, %v", path, got[i], want, err)
		}
	}
	if n := z.client.socket.reads; n != 2 {
		t.Errorf("%d multi-reads, want 2 and one single read", n)
	}
}

func TestReadOfARecordThatIsDenied(t *testing.T) {
	ens := zktest.Single(t)
	owner := newZK(t, ZKConfig{Connect: ens.Addr(), DigestAuth: "flaked:secret"})
	if err := owner.EnsureRoot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := owner.Multi(t.Context(), CreateOp{Path: "/secret", Secret: true}); err != nil {
		t.Fatal(err)
	}
	other := newZK(t, ZKConfig{Connect: ens.Addr()})
	if _, err := other.GetAll(t.Context(), "/missing", "/secret"); !errors.Is(err, ErrDenied) {
		t.Error(err)
	}
	if other.oldServer.Load() {
		t.Error("the server is taken for an old one")
	}
}

// A server before 3.6 refuses a multi-read and ends the session. The call reads one by one in the next session.
func TestServerWithoutMultiRead(t *testing.T) {
	addr := fakeServer(t, func(c conn) {
		if readFrame(c) != nil {
			return
		}
		_, _ = c.Write(greet(7, 4000))
		for {
			head := make([]byte, 12)
			if _, err := io.ReadFull(c, head); err != nil {
				return
			}
			size, xid := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
			_, _ = io.CopyN(io.Discard, c, int64(size)-8)
			code := int32(codeNoNode)
			if binary.BigEndian.Uint32(head[8:]) == opMultiRead {
				code = codeUnknownRequest
			}
			answer := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 16), xid)
			_, _ = c.Write(binary.BigEndian.AppendUint32(append(answer, make([]byte, 8)...), uint32(code)))
			if code == codeUnknownRequest {
				return
			}
		}
	})
	z := newZK(t, ZKConfig{Connect: addr})
	for range 2 {
		if found, err := z.GetAll(t.Context(), "/a", "/b"); err != nil || len(found) != 2 || found[0].Found {
			t.Errorf("%+v, %v", found, err)
		}
	}
}

// A multi-read takes the reply that came before the connection ended: only that tells that the server is an old one.
func TestMultiReadAnsweredBeforeTheEnd(t *testing.T) {
	code := int32(codeUnknownRequest)
	reply := binary.BigEndian.AppendUint32(make([]byte, 8), uint32(code))
	for range 50 {
		socket := &answersAndEnds{reply: reply}
		socket.wire = newWireConn(socket, time.Now())
		if err := socket.wire.multiRead([]string{"/a"}, make([]Record, 1)); err != errOldServer {
			t.Fatal(err)
		}
	}
}

// answersAndEnds is a connection that answers a multi-read and is closed before the write returns.
type answersAndEnds struct {
	net.Conn
	reply []byte
	wire  *wireConn
}

func (a *answersAndEnds) Close() error { return nil }
func (a *answersAndEnds) Write(p []byte) (int, error) {
	a.wire.deliver(int32(binary.BigEndian.Uint32(p[4:])), a.reply)
	return len(p), a.wire.Close()
}

// A reply that ends early is an error, wherever it ends, and reads nothing beyond its end.
func TestMultiReadThatEndsEarly(t *testing.T) {
	be := binary.BigEndian
	reply := append(make([]byte, 12), 0, 0, 0, opGetData, 0, 0, 0, 0, 0)
	reply = append(be.AppendUint32(reply, 3), "abc"...)
	reply = append(reply, make([]byte, 68)...)
	reply = append(reply, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0x9b)
	missing := int32(codeNoNode)
	reply = be.AppendUint32(reply, uint32(missing))
	whole := make([]Record, 2)
	if err := decodeMultiRead(reply, whole); err != nil || string(whole[0].Data) != "abc" || whole[1].Found {
		t.Fatalf("%+v, %v", whole, err)
	}
	for n := range reply {
		if err := decodeMultiRead(reply[:n:n], make([]Record, 2)); !errors.Is(err, zk.ErrShortBuffer) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
