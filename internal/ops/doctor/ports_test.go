package doctor

import (
	"io/fs"
	"net"
	"path/filepath"
	"testing"

	"github.com/flaked/flaked/internal/testkit/faultnet"
)

func TestPorts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := filepath.Join(dir, "left")
	if err := faultnet.LeaveSocket(left); err != nil {
		t.Fatal(err)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() })
	taken := busy.Addr().String()
	try := func(network, address string, running bool) Finding {
		return judgePort("--listen", address, tryListen(network, address), running)
	}
	checkRows(t, []row{ // port 0 is free, whatever other programs take
		{"free", try("tcp", "127.0.0.1:0", false), OK, "is free to listen on"},
		{"free beside a node", try("tcp", "127.0.0.1:0", true), Warn, "though a node runs here"},
		{"ours", try("tcp", taken, true), OK, "is in use, and a node runs here"},
		{"somebody else's", try("tcp", taken, false), Fail, "is already in use, and no node that is visible from here " +
			"uses the state directory. Choose another --listen"},
		{"not an address of ours", try("tcp", "192.0.2.1:7609", false), Fail, "no such address"},
		{"a new socket", try("unix", filepath.Join(dir, "new"), false), OK, "free"},
		{"left behind", try("unix", left, false), OK, "free"},
		{"not allowed", judgePort("--admin", ":80", fs.ErrPermission, false), Fail, "Choose another --admin, or run doctor"},
	})
}
