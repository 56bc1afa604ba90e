package doctor

import (
	"net"
	"testing"
)

func TestServerThatClosesConnectionsAtOnce(t *testing.T) {
	for _, closes := range []bool{true, false} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		if closes {
			go func() {
				if conn, err := ln.Accept(); err == nil {
					conn.Close()
				}
			}()
		}
		if got := closesAtOnce(ln.Addr().String()); got != closes {
			t.Errorf("%v, want %v", got, closes)
		}
	}
}
