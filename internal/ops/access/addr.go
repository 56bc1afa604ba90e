package access

import (
	"fmt"
	"net"
	"strings"
	"syscall"
)

// DefaultPort is the port of the line protocol where none is given.
const DefaultPort = "7609"

// maxSocketPath is the most bytes of the path of a unix socket on this system.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// SplitAddr parses an address: host:port, a host alone (port 7609), :port on this machine, or
// unix:/path. It does not look up host names.
func SplitAddr(addr string) (network, address string, err error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if !strings.HasPrefix(path, "/") {
			return "", "", fmt.Errorf("%q: the path of a unix socket must begin with /, as in "+
				"unix:/run/flaked.sock", addr)
		}
		if len(path) > maxSocketPath {
			return "", "", fmt.Errorf("%q: the path has %d bytes, and a unix socket's may have %d. Choose a shorter "+
				"one", addr, len(path), maxSocketPath)
		}
		return "unix", path, nil
	}
	if addr == "" || strings.ContainsAny(addr, "/ \t") {
		return "", "", fmt.Errorf("%q is not HOST:PORT or unix:/PATH", addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		host, port = strings.Trim(addr, "[]"), DefaultPort
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", "", fmt.Errorf("%q is not HOST:PORT: %w", addr, err)
		}
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return "", "", fmt.Errorf("%q: %q is not a port", addr, port)
	}
	return "tcp", net.JoinHostPort(host, port), nil
}
