package dialog

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

func TestSplitAddr(t *testing.T) {
	for _, row := range []struct{ addr, network, want, err string }{
		{"h:1", "tcp", "h:1", ""},
		{"h", "tcp", "h:7609", ""},
		{":1", "tcp", ":1", ""},
		{"::1", "tcp", "[::1]:7609", ""},
		{"[::1]", "tcp", "[::1]:7609", ""},
		{"[::1]:1", "tcp", "[::1]:1", ""},
		{"unix:/a/b", "unix", "/a/b", ""},
		{"", "", "", `"" is not HOST:PORT, such as 127.0.0.1:7609`},
		{"7610", "", "", `"7610" is a port without a host. Write HOST:7610, such as 127.0.0.1:7610`},
		{"h:", "", "", `"h:": "" is not a port`},
		{"h:99999", "", "", `"h:99999": "99999" is not a port`},
		{"a b", "", "", `"a b" is not HOST:PORT`},
		{"h:1/x", "", "", `"h:1/x" is not HOST:PORT`},
		{"redis://h:1/0", "", "", `"redis://h:1/0" is a URL. Write HOST:PORT, without redis:// and what`},
		{"/run/s", "", "", `"/run/s" is not HOST:PORT. For a unix socket write unix:/run/s`},
		{"unix:~/s", "", "", `"unix:~/s": the path of a unix socket must begin with /`},
		{"a:b:1", "", "", `"a:b:1" is not HOST:PORT. Write an IPv6 address in brackets, as in [::1]:7609`},
		{"unix:/" + strings.Repeat("x", 200), "", "", "the path has 201 bytes"},
	} {
		network, got, err := SplitAddr(row.addr)
		switch {
		case row.err == "" && (network != row.network || got != row.want || err != nil):
			t.Errorf("%q: %s %s, %v", row.addr, network, got, err)
		case row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)):
			t.Errorf("%q: %v, want %s", row.addr, err, row.err)
		}
	}
	if _, err := SplitTCP("unix:/a", "7610"); err == nil || !strings.Contains(err.Error(), "is a unix socket") {
		t.Error(err)
	}
}

// FuzzSplitAddr: an address that is taken has a host that can be dialled and a port, and is taken again as it is. The
// refusal shows the address.
func FuzzSplitAddr(f *testing.F) {
	for _, s := range []string{"h:1", "h", ":1", "::1", "[::1]", "[::1]:x", "unix:/a", "a]b", "[", "h:domain", "h://"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		network, address, err := SplitAddr(addr)
		if err != nil {
			if !strings.Contains(err.Error(), strconv.Quote(addr)) {
				t.Errorf("%q: %v", addr, err)
			}
			return
		}
		if host, _, _ := strings.Cut(address, ":"); network == "tcp" && host == "unix" {
			return // such a host must be written as [unix] when it has a port
		}
		if network == "unix" {
			address = "unix:" + address
		} else if host, port, err := net.SplitHostPort(address); err != nil || port == "" ||
			host == "" && addr[0] != ':' && !strings.HasPrefix(addr, "[]:") {
			t.Errorf("%q is %s: %v", addr, address, err)
		}
		if n, again, err := SplitAddr(address); err != nil || n != network ||
			again != strings.TrimPrefix(address, "unix:") {
			t.Errorf("%q is %s, and that is %s %s: %v", addr, address, n, again, err)
		}
		if got := PeerAddress(addr); network == "tcp" && got != "" && !strings.Contains(addr, ",") && got != address {
			t.Errorf("%q is %s, and %s for other nodes", addr, address, got)
		}
	})
}

func TestAddressForOtherNodes(t *testing.T) {
	for list, want := range map[string]string{
		"":                                     "",
		"unix:/run/flaked.sock":                "",
		"0.0.0.0:7609":                         "",
		":7609":                                "",
		"[::]:7609":                            "",
		"ids-1":                                "ids-1:7609",
		"10.0.0.3:7619":                        "10.0.0.3:7619",
		"unix:/run/flaked.sock,ids-1:7609":     "ids-1:7609",
		"0.0.0.0:7609,10.0.0.3:7609,ids-1:761": "10.0.0.3:7609",
		"127.0.0.1:7609":                       "127.0.0.1:7609",
		"localhost:7609,[::1]:7619":            "localhost:7609",
		"127.0.0.1:7609,[2001:db8::1]:7609":    "[2001:db8::1]:7609",
		"not an address,ids-1:7609":            "ids-1:7609",
	} {
		if got := PeerAddress(list); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}
