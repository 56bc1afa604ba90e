//go:build unix

package zktest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// program holds the path of the Java binary and ZooKeeper's classpath.
type program struct {
	Java, Classpath string
	Properties      []string // more arguments of Java
	Admin           bool     // serve the admin commands
}

// addr returns the address for clients, host:port.
func (s *server) addr() string    { return "127.0.0.1:" + strconv.Itoa(s.client) }
func (s *server) config() string  { return filepath.Join(s.dir, "zoo.cfg") }
func (s *server) dataDir() string { return filepath.Join(s.dir, "data") }
func (s *server) logFile() string { return filepath.Join(s.dir, "log") }

// configure writes zoo.cfg and myid of a server in the ensemble all.
func (s *server) configure(all []*server) error {
	if err := os.MkdirAll(s.dataDir(), 0o700); err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, "# written by internal/testkit/zktest of flaked")
	fmt.Fprintln(&b, "tickTime=500") // allows sessions of 1 s
	fmt.Fprintf(&b, "dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n", s.dataDir(), s.client)
	fmt.Fprintln(&b, "maxClientCnxns=0") // no limit: all clients have one address
	fmt.Fprintf(&b, "admin.enableServer=%v\nadmin.serverAddress=127.0.0.1\nadmin.serverPort=%d\n4lw.commands.whitelist=*\n", s.prog.Admin, s.admin)
	if len(all) > 1 {
		fmt.Fprintf(&b, "initLimit=20\nsyncLimit=10\nstandaloneEnabled=false\n")
		for _, o := range all {
			fmt.Fprintf(&b, "server.%d=127.0.0.1:%d:%d\n", o.id, o.quorum, o.election)
		}
		if err := os.WriteFile(filepath.Join(s.dataDir(), "myid"), fmt.Appendln(nil, s.id), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(s.config(), b.Bytes(), 0o600)
}

// tail returns the last 15 lines of the log, without stack frames, under a heading.
func (s *server) tail() string {
	log, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error() + "\n"
	}
	var lines []string
	for line := range strings.Lines(string(log)) {
		if !strings.HasPrefix(line, "\tat ") {
			lines = append(lines, line)
		}
	}
	return fmt.Sprintf("--- the end of %s\n%s", s.logFile(), strings.Join(lines[max(0, len(lines)-15):], ""))
}
