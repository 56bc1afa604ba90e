//go:build unix

package zktest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Program holds the path of the Java binary and ZooKeeper's classpath.
type Program struct{ Java, Classpath string }

// Server is one server of an ensemble. Its caller owns the process.
type Server struct {
	ID  int    // from 1, as ZooKeeper counts
	Dir string // absolute path of the directory of zoo.cfg, log and data

	// Ports on 127.0.0.1. A standalone server uses only Client.
	Client, Quorum, Election int
}

// Addr returns the address for clients, host:port.
func (s *Server) Addr() string    { return "127.0.0.1:" + strconv.Itoa(s.Client) }
func (s *Server) Config() string  { return filepath.Join(s.Dir, "zoo.cfg") }
func (s *Server) DataDir() string { return filepath.Join(s.Dir, "data") }
func (s *Server) LogFile() string { return filepath.Join(s.Dir, "log") }

// Configure writes zoo.cfg and myid of a server in the ensemble all.
func (s *Server) Configure(all []*Server) error {
	if err := os.MkdirAll(s.DataDir(), 0o700); err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, "# written by internal/testkit/zktest of flaked")
	fmt.Fprintln(&b, "tickTime=500") // allows sessions of 1 s
	fmt.Fprintf(&b, "dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n", s.DataDir(), s.Client)
	fmt.Fprintln(&b, "maxClientCnxns=0") // no limit: all clients have one address
	fmt.Fprintf(&b, "admin.enableServer=false\n4lw.commands.whitelist=*\n")
	if len(all) > 1 {
		fmt.Fprintf(&b, "initLimit=20\nsyncLimit=10\nstandaloneEnabled=false\n")
		for _, o := range all {
			fmt.Fprintf(&b, "server.%d=127.0.0.1:%d:%d\n", o.ID, o.Quorum, o.Election)
		}
		if err := os.WriteFile(filepath.Join(s.DataDir(), "myid"), fmt.Appendln(nil, s.ID), 0o600); err != nil {
			return err
		}
	}
	// Replace the file atomically, because other processes read it.
	if err := os.WriteFile(s.Config()+".new", b.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(s.Config()+".new", s.Config())
}

// Launch starts the server's process by calling start. It does not wait until the server
// serves. The process appends its output to LogFile. options are further options of Java.
func (s *Server) Launch(prog Program, start func(*exec.Cmd) error, options ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	args := append(options,
		"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-XX:-UsePerfData", // else kill -9 leaves a /tmp file
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
		// At level info ZooKeeper logs a line for each `srvr` that Mode sends.
		"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn",
		"-cp", prog.Classpath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", s.Config())
	cmd := exec.Command(prog.Java, args...)
	cmd.Dir = s.Dir
	cmd.Stdout, cmd.Stderr = log, log // files, so that os/exec starts no goroutines
	if err := start(cmd); err != nil {
		return nil, err
	}
	return cmd, nil
}

// Tail returns the last 15 lines of the log, without stack frames, under a heading.
func (s *Server) Tail() string {
	log, err := os.ReadFile(s.LogFile())
	if err != nil {
		return err.Error() + "\n"
	}
	var lines []string
	for line := range strings.Lines(string(log)) {
		if !strings.HasPrefix(line, "\tat ") {
			lines = append(lines, line)
		}
	}
	return fmt.Sprintf("--- the end of %s\n%s", s.LogFile(), strings.Join(lines[max(0, len(lines)-15):], ""))
}
