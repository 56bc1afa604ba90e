package lineproto

import (
	"net"
	"path/filepath"
	"testing"
)

// peerState tells connected clients, half-closed ones and lost ones apart while their
// input is unread.
func TestPeerState(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		addr := "127.0.0.1:0"
		if network == "unix" {
			addr = filepath.Join(t.TempDir(), "s")
		}
		l, err := net.Listen(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for _, row := range []struct {
			name             string
			end              func(c *client)
			halfClosed, gone bool
		}{
			{"there", func(*client) {}, false, false},
			{"half closed", func(c *client) { c.CloseWrite() }, true, false},
			{"gone", (*client).vanish, true, true},
		} {
			nc, err := net.Dial(network, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			ours, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			c := &client{stream: nc.(stream), t: t}
			c.send("GET 10000\n")
			row.end(c)
			until(t, network+": "+row.name, func() bool {
				halfClosed, gone := peerState(ours)
				return halfClosed == row.halfClosed && gone == row.gone
			})
		}
	}
	if halfClosed, gone := peerState(discardConn{}); halfClosed || gone {
		t.Error("something is known of what is no socket")
	}
}
