package dialog

import (
	"fmt"
	"net"
	"net/netip"
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
	if strings.HasPrefix(addr, "/") {
		return "", "", fmt.Errorf("%q is not HOST:PORT. For a unix socket write unix:%[1]s", addr)
	}
	address, err = SplitTCP(addr, DefaultPort)
	return "tcp", address, err
}

// SplitTCP parses an address as SplitAddr does, but for unix:/path. port is that of a host alone.
func SplitTCP(addr, port string) (address string, err error) {
	bad := func(format string, a ...any) (string, error) {
		return "", fmt.Errorf("%q "+format, append([]any{addr}, a...)...)
	}
	scheme, _, isURL := strings.Cut(addr, "://")
	switch {
	case isURL:
		return bad("is a URL. Write HOST:PORT, without %s:// and what follows the port", scheme)
	case strings.HasPrefix(addr, "unix:"):
		return bad("is a unix socket. Write HOST:PORT")
	case addr == "" || strings.ContainsAny(addr, "/ \t"):
		return bad("is not HOST:PORT, such as 127.0.0.1:%s", port)
	case strings.Trim(addr, "0123456789") == "":
		return bad("is a port without a host. Write HOST:%s, such as 127.0.0.1:%[2]s", addr)
	}
	host, given, err := net.SplitHostPort(addr)
	switch {
	case err == nil:
		port = given
	case strings.ContainsAny(addr, ":[]") && net.ParseIP(strings.Trim(addr, "[]")) == nil:
		return bad("is not HOST:PORT. Write an IPv6 address in brackets, as in [::1]:%s", port)
	default:
		host = strings.Trim(addr, "[]")
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return "", fmt.Errorf("%q: %q is not a port", addr, port)
	}
	return net.JoinHostPort(host, port), nil
}

// PeerAddress returns the first address in a list, separated by commas, at which other nodes reach the one that
// serves the list, "" for none. A unix socket and 0.0.0.0 are none. A loopback address is the last resort, because
// it reaches nodes on the same machine only.
func PeerAddress(list string) (found string) {
	for addr := range strings.SplitSeq(list, ",") {
		network, address, err := SplitAddr(addr)
		if err != nil || network != "tcp" {
			continue
		}
		host, _, _ := net.SplitHostPort(address)
		ip, _ := netip.ParseAddr(host) // the zero Addr for a name
		switch {
		case host == "" || ip.IsValid() && ip.IsUnspecified():
		case !IsLoopback(address):
			return address
		case found == "":
			found = address
		}
	}
	return found
}

// IsLoopback reports whether an address reaches its own machine only.
func IsLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
