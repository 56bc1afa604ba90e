package store

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseConnect(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		hosts    []string
		chroot   string
	}{
		{"one host", "zk1:2182", []string{"zk1:2182"}, ""},
		{"default port", "zk1", []string{"zk1:2181"}, ""},
		{"three hosts", "a:1,b:2,c", []string{"a:1", "b:2", "c:2181"}, ""},
		{"spaces around commas", " a:1 , b:2,\tc ", []string{"a:1", "b:2", "c:2181"}, ""},
		{"chroot", "a,b/x/y", []string{"a:2181", "b:2181"}, "/x/y"},
		{"chroot of one slash is none", "a/", []string{"a:2181"}, ""},
		{"IPv4", "10.0.0.1:99", []string{"10.0.0.1:99"}, ""},
		{"IPv6", "[::1]:99,[fe80::1]/x", []string{"[::1]:99", "[fe80::1]:2181"}, "/x"},
		{"headless service", "zk-0.zk_hl.ns.svc:2181", []string{"zk-0.zk_hl.ns.svc:2181"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseConnect(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if want := (Connect{Hosts: tc.hosts, Chroot: tc.chroot}); !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			if again, err := ParseConnect(got.String()); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("%q does not parse back: %+v, %v", got.String(), again, err)
			}
		})
	}
}

func TestParseConnectRefuses(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", "", "no host"},
		{"only spaces", "  ", "no host"},
		{"only a chroot", "/x", "no host"},
		{"empty entry", "a,,b", "empty host"},
		{"trailing comma", "a,", "empty host"},
		{"trailing comma before chroot", "a,/x", "empty host"},
		{"scheme", "zk://a:2181/x", "remove the scheme"},
		{"bare IPv6", "::1", "brackets"},
		{"bracket open", "[::1", "not closed"},
		{"no address in brackets", "[zk1]:2181", "must contain an IPv6"},
		{"IPv4 in brackets", "[127.0.0.1]:2181", "must contain an IPv6"},
		{"text after bracket", "[::1]2181", "after the bracket"},
		{"bracket and empty port", "[::1]:", "port missing"},
		{"empty port", "a:", "port missing"},
		{"empty name", ":2181", "name missing"},
		{"port zero", "a:0", "must be between"},
		{"port too large", "a:65536", "must be between"},
		{"port negative", "a:-1", "must be between"},
		{"port a word", "a:zk", "must be between"},
		{"space inside", "a b:1", "unexpected ' '"},
		{"semicolons", "a;b", "unexpected ';'"},
		{"chroot ends in a slash", "a/x/", "end in a slash"},
		{"chroot doubles a slash", "a//x", "must not have an empty part"},
		{"chroot goes up", "a/x/../y", "must not have . or .. as a part"},
		{"chroot with a control character", "a/x\x01", "U+0001"},
		{"chroot not UTF-8", "a/\xff", "must be valid UTF-8"},
		{"chroot per host", "a/x,b/x", "after the last host"},
		{"reserved chroot", "a/zookeeper/x", "reserved"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseConnect(tc.in)
			if err == nil {
				t.Fatalf("got %+v, want an error", got)
			}
			for _, want := range []string{"connect string ", tc.want} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

func TestCheckCluster(t *testing.T) {
	for _, good := range []string{"a", "0", "prod", "eu-west_1.b", strings.Repeat("x", 64)} {
		if err := checkCluster(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "-a", "_a", "a/b", "a b", "é", "a\x00", strings.Repeat("x", 65)} {
		if err := checkCluster(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzParseConnect(f *testing.F) {
	for _, s := range []string{"a:1,b/x", "[::1]:2", ",", "a/", "/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseConnect(s)
		if err != nil {
			return
		}
		again, err := ParseConnect(c.String())
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%q: %+v does not parse back: %+v, %v", s, c, again, err)
		}
	})
}
