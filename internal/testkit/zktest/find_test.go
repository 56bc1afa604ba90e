package zktest

import "testing"

func TestParseMode(t *testing.T) {
	for name, row := range map[string]struct{ srvr, mode string }{
		"leader":     {"Zookeeper version: 3.8.0\nMode: leader\nNode count: 5\n", "leader"},
		"electing":   {"This ZooKeeper instance is not currently serving requests\n", ""},
		"no reply":   {"", ""},
		"CRLF":       {"Mode: follower\r\n", "follower"},
		"other text": {"not a Mode: line\n", ""},
	} {
		if got := parseMode(row.srvr); got != row.mode {
			t.Errorf("%s: %q, want %q", name, got, row.mode)
		}
	}
}

func TestFindUsesTheEnvironment(t *testing.T) {
	env := map[string]string{"FLAKED_ZK_JAVA": "/a/java", "FLAKED_ZK_CLASSPATH": "/b/*"}
	got, err := find(func(name string) string { return env[name] })
	if want := (program{java: "/a/java", classpath: "/b/*"}); err != nil || got != want {
		t.Errorf("found %+v, %v; want %+v", got, err, want)
	}
}

func TestPathName(t *testing.T) {
	if got, want := pathName("TestX/a_b c/ü"), "TestX-a-b-c--"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTakenPortsAreNotGivenAgain(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		p, err := takePort()
		if err != nil {
			t.Fatal(err)
		}
		defer p.release()
		if seen[p.number] {
			t.Fatalf("port %d given twice", p.number)
		}
		seen[p.number] = true
		if release, err := claim(p.number); err == nil {
			release()
			t.Fatalf("port %d can be claimed twice", p.number)
		}
	}
}
