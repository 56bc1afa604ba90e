package main

import (
	"net"
	"net/netip"
	"strings"
)

// checkAdvertised returns a usage error for a host that other machines cannot dial. "" is valid.
func checkAdvertised(host string) error {
	if ip, err := netip.ParseAddr(host); err == nil && !ip.IsUnspecified() {
		return nil
	}
	if host != "" && (strings.ContainsAny(host, ":/, \t\r\n[]") || strings.Trim(host, "0.") == "") {
		return usageError("--advertise %q is not a host. Give an address or a host name, without a port", host)
	}
	return nil
}

// advertised returns the address at which other machines find a listener on addr. If addr is on
// all interfaces, host replaces its host part.
func advertised(addr, host string) string {
	on, port, err := net.SplitHostPort(addr)
	if host == "" || err != nil || strings.HasPrefix(addr, "unix:") {
		return addr
	}
	if ip, err := netip.ParseAddr(on); on == "" || err == nil && ip.IsUnspecified() {
		return net.JoinHostPort(host, port)
	}
	return addr
}

func allAdvertised(addrs []string, host string) string {
	var out []string
	for _, addr := range addrs {
		out = append(out, advertised(addr, host))
	}
	return strings.Join(out, ",")
}
