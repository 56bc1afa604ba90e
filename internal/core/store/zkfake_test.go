package store

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

func readFrame(conn net.Conn) error {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:])))
	return err
}

// greet returns the first answer of a ZooKeeper to a client. timeout is in milliseconds.
func greet(session uint64, timeout uint32) []byte {
	be := binary.BigEndian
	body := be.AppendUint32(nil, 0)
	body = be.AppendUint32(body, timeout)
	body = be.AppendUint64(body, session)
	body = be.AppendUint32(body, 16)
	body = append(body, make([]byte, 16)...)
	body = append(body, 0)
	return append(be.AppendUint32(nil, uint32(len(body))), body...)
}

// fakeServer runs serve on every connection, and returns the server's address.
func fakeServer(t *testing.T, serve func(c conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			wg.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return ln.Addr().String()
}

type conn = net.Conn

// swallow reads everything and never answers.
func swallow(c conn) { _, _ = io.Copy(io.Discard, c) }
