package doctor

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
)

func TestPorts(t *testing.T) {
	t.Parallel()
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	dir := t.TempDir()
	left := filepath.Join(dir, "left")
	syscall.ForkLock.RLock() // a child that another test starts would have the listener until its exec
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: left})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	syscall.ForkLock.RUnlock()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() })
	taken := busy.Addr().String()
	for _, tc := range []struct {
		name, network, address string
		running                bool
		level                  Level
		text                   string
	}{
		{"free", "tcp", free(), false, OK, "is free to listen on"},
		{"free beside a node", "tcp", free(), true, Warn, "though a node runs here"},
		{"ours", "tcp", taken, true, OK, "is in use, and a node runs here"},
		{"somebody else's", "tcp", taken, false, Fail, "is already in use, and no node that is visible from here " +
			"uses the state directory. Choose another --listen"},
		{"not an address of ours", "tcp", "192.0.2.1:7609", false, Fail, "no such address"},
		{"a new socket", "unix", filepath.Join(dir, "new"), false, OK, "free"},
		{"left behind", "unix", left, false, OK, "free"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			judgePort("--listen", tc.address, tryListen(tc.network, tc.address), tc.running).wants(t, tc.name,
				tc.level, tc.text)
		})
	}
}
