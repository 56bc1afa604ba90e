package doctor

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPorts(t *testing.T) {
	t.Parallel()
	answering := func(reply string) string {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte(reply))
				// Wait for the other side to close: closing first would reset the connection if
				// it holds unread bytes.
				buf := make([]byte, 64)
				for err == nil {
					_, err = conn.Read(buf)
				}
				_ = conn.Close()
			}
		}()
		return l.Addr().String()
	}
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	dir := t.TempDir()
	file, left := filepath.Join(dir, "file"), filepath.Join(dir, "left")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: left})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	flaked := answering("flaked 1.2.3\n")
	for _, tc := range []struct {
		name, network, address string
		running                bool
		level                  Level
		text                   string
	}{
		{"free", "tcp", free(), false, OK, "is free to listen on"},
		{"free beside a node", "tcp", free(), true, Warn, "though a node runs here"},
		{"ours", "tcp", flaked, true, OK, "is in use by flaked 1.2.3"},
		{"another node's", "tcp", flaked, false, Warn, "does not use this state directory"},
		{"with a token", "tcp", answering("-NOAUTH not authenticated. Send AUTH [user] token\n"), true, OK, "in use by a flaked"},
		{"with TLS", "tcp", answering("-ERR this port requires TLS. Connect with TLS\r\n"), true, OK, "in use by a flaked"},
		{"somebody else's", "tcp", answering("220 mail\r\n"), false, Fail, "is already in use, and no flaked answers there. Choose another --listen"},
		{"its HTTP", "admin", answering("HTTP/1.0 200 OK\r\nServer: flaked/1.2.3\r\n\r\n"), true, OK, "flaked 1.2.3"},
		{"another's HTTP", "admin", answering("HTTP/1.0 200 OK\r\nServer: x\r\n\r\n"), true, Fail, "Choose another --admin"},
		{"not an address of ours", "tcp", "192.0.2.1:7609", false, Fail, "no such address"},
		{"a new socket", "unix", filepath.Join(dir, "new"), false, OK, "free"},
		{"left behind", "unix", left, false, OK, "free"},
		{"a file", "unix", file, false, Fail, "is not a socket"},
		{"nowhere", "unix", filepath.Join(dir, "none", "sock"), false, Fail, "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			checkPort(ctx, tc.network, tc.address, tc.running).wants(t, tc.name, tc.level, tc.text)
		})
	}
}
