package main

import "testing"

func TestAdvertised(t *testing.T) {
	for name, row := range map[string]struct{ addr, host, want string }{
		"all addresses":          {"0.0.0.0:7609", "10.0.0.5", "10.0.0.5:7609"},
		"all of IPv6":            {"[::]:7609", "fd00::5", "[fd00::5]:7609"},
		"no host":                {":7609", "ids-1.example.com", "ids-1.example.com:7609"},
		"an address of its own":  {"10.0.0.7:7609", "10.0.0.5", "10.0.0.7:7609"},
		"loopback":               {"127.0.0.1:7609", "10.0.0.5", "127.0.0.1:7609"},
		"a name":                 {"localhost:7609", "10.0.0.5", "localhost:7609"},
		"a socket":               {"unix:/run/a:1", "10.0.0.5", "unix:/run/a:1"},
		"nothing is advertised":  {"0.0.0.0:7609", "", "0.0.0.0:7609"},
		"what is no address too": {"x", "10.0.0.5", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := advertised(row.addr, row.host); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
	if got, want := allAdvertised([]string{"0.0.0.0:7609", "unix:/run/s"}, "a"), "a:7609,unix:/run/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCheckAdvertised(t *testing.T) {
	for host, ok := range map[string]bool{
		"": true, "10.0.0.5": true, "fd00::5": true, "ids-1": true, "ids-1.example.com": true,
		"0.0.0.0": false, "::": false, "10.0.0.5:7609": false, "[fd00::5]": false, "ids-1:7609": false,
		"a b": false, "unix:/x": false, "a,b": false,
	} {
		if err := checkAdvertised(host); (err == nil) != ok {
			t.Errorf("%q: %v", host, err)
		}
	}
}
