//go:build !linux

package lineproto

import "net"

func limitUnsent(*net.TCPConn) {}
