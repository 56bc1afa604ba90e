package zkserver

import (
	"net"
	"os"
	"strings"
	"testing"
)

func TestConfigureNamesAllServersOfAnEnsemble(t *testing.T) {
	s := &Server{ID: 2, Dir: t.TempDir(), Client: 2182, Quorum: 2889, Election: 3889}
	other := &Server{ID: 1, Quorum: 2888, Election: 3888}
	for name, row := range map[string]struct {
		all     []*Server
		servers string
	}{
		"standalone": {[]*Server{s}, ""},
		"ensemble":   {[]*Server{other, s}, "server.1=127.0.0.1:2888:3888\nserver.2=127.0.0.1:2889:3889\n"},
	} {
		if err := s.Configure(row.all); err != nil {
			t.Fatal(err)
		}
		config, err := os.ReadFile(s.Config())
		if err != nil {
			t.Fatal(err)
		}
		if want := "dataDir=" + s.Dir + "/data\nclientPort=2182\n"; !strings.Contains(string(config), want) {
			t.Errorf("%s:\n%s\nwant %s", name, config, want)
		}
		var servers string
		for line := range strings.Lines(string(config)) {
			if strings.HasPrefix(line, "server.") {
				servers += line
			}
		}
		if servers != row.servers {
			t.Errorf("%s: %q, want %q", name, servers, row.servers)
		}
	}
	if id, err := os.ReadFile(s.DataDir() + "/myid"); string(id) != "2\n" {
		t.Errorf("myid is %q, %v", id, err)
	}
}

func TestTailLeavesOutStackFrames(t *testing.T) {
	s := &Server{Dir: t.TempDir()}
	log := "first\n" + strings.Repeat("line\n", 13) + "java.net.BindException: Address already in use\n\tat java.base/x\nend\n"
	if err := os.WriteFile(s.LogFile(), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "--- the end of " + s.LogFile() + "\n" + strings.Repeat("line\n", 13) + "java.net.BindException: Address already in use\nend\n"
	if got := s.Tail(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTryPortSaysWhyAPortIsNotFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := TryPort(port); err == nil || !strings.HasSuffix(err.Error(), ": address already in use") {
		t.Errorf("a port in use: %v", err)
	}
	l.Close()
	if err := TryPort(port); err != nil {
		t.Errorf("a free port: %v", err)
	}
	if err := TryPort(65536); err == nil {
		t.Error("port 65536 is free")
	}
}
