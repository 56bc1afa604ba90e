package flaked

import "testing"

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
		if got := (Config{Address: list}).peerAddress(); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}
