package store

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const defaultPort = 2181

// Connect is a parsed connect string: the ZooKeeper servers, and the record below which
// flaked keeps all its records.
type Connect struct {
	Hosts  []string // "host:port" each, IPv6 addresses in brackets
	Chroot string   // "" or "/a/b"
}

// String returns the connect string with the port of every host.
func (c Connect) String() string { return strings.Join(c.Hosts, ",") + c.Chroot }

// Identity returns the hosts, sorted, and the chroot. It does not depend on the order of
// the hosts in the connect string.
func (c Connect) Identity() string {
	return strings.Join(slices.Sorted(slices.Values(c.Hosts)), ",") + c.Chroot
}

// ParseConnect reads "host:port,host:port/chroot". The port defaults to 2181,
// the chroot to none, and "/" means none as well. Names are not looked up.
func ParseConnect(s string) (Connect, error) {
	fail := func(err error) (Connect, error) {
		return Connect{}, fmt.Errorf("connect string %q: %w", s, err)
	}
	list, chroot := strings.TrimSpace(s), ""
	if strings.Contains(list, "://") {
		return fail(errors.New("remove the scheme: write host:port,host:port/chroot"))
	}
	if i := strings.IndexByte(list, '/'); i >= 0 {
		list, chroot = list[:i], list[i:]
	}
	if chroot == "/" {
		chroot = ""
	}
	if chroot != "" {
		// ZooKeeper allows a comma in a path. In a connect string it means a chroot for
		// each host.
		if strings.Contains(chroot, ",") {
			return fail(errors.New("write the chroot only once, after the last host"))
		}
		if err := checkPath(chroot); err != nil {
			return fail(fmt.Errorf("chroot: %w", err))
		}
		if chroot == "/zookeeper" || strings.HasPrefix(chroot, "/zookeeper/") {
			return fail(errors.New("chroot: /zookeeper is reserved for ZooKeeper itself"))
		}
	}
	if strings.TrimSpace(list) == "" {
		return fail(errors.New("no host"))
	}
	var hosts []string
	for entry := range strings.SplitSeq(list, ",") {
		host, err := parseHost(strings.TrimSpace(entry))
		if err != nil {
			return fail(err)
		}
		hosts = append(hosts, host)
	}
	return Connect{Hosts: hosts, Chroot: chroot}, nil
}

func parseHost(s string) (string, error) {
	if s == "" {
		return "", errors.New("empty host between commas")
	}
	host, port := s, ""
	switch {
	case s[0] == '[':
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", fmt.Errorf("host %q: bracket not closed", s)
		}
		host = s[1:end]
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is6() {
			return "", fmt.Errorf("host %q: the brackets must contain an IPv6 address", s)
		}
		rest := s[end+1:]
		if rest != "" && rest[0] != ':' {
			return "", fmt.Errorf("host %q: unexpected %q after the bracket", s, rest)
		}
		if rest != "" {
			port = rest[1:]
			if port == "" {
				return "", fmt.Errorf("host %q: port missing after the colon", s)
			}
		}
	case strings.Count(s, ":") > 1:
		return "", fmt.Errorf("host %q: write an IPv6 address in brackets, such as [::1]:2181", s)
	default:
		var colon bool
		host, port, colon = strings.Cut(s, ":")
		if host == "" {
			return "", fmt.Errorf("host %q: name missing before the colon", s)
		}
		if colon && port == "" {
			return "", fmt.Errorf("host %q: port missing after the colon", s)
		}
		for _, r := range host {
			switch {
			case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			default:
				return "", fmt.Errorf("host %q: unexpected %q", s, r)
			}
		}
	}
	n := defaultPort
	if port != "" {
		u, err := strconv.ParseUint(port, 10, 16)
		if err != nil || u == 0 {
			return "", fmt.Errorf("host %q: port %q must be between 1 and 65535", s, port)
		}
		n = int(u)
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}
