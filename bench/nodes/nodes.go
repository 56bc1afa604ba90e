//go:build linux

// Package nodes starts nodes for the programs of bench/, and reads what they use.
package nodes

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

var (
	Binary = flag.String("flaked", "bin/flaked", "the program to measure")
	ZK     = flag.String("zk", os.Getenv("FLAKED_ZK"), "a ZooKeeper, host:port")
)

// Start starts a node of a cluster, which ends with the thread of the caller. core is the processor that it runs on, ""
// for all.
func Start(core, cluster string, flags ...string) *exec.Cmd {
	args := append([]string{*Binary, "serve", "--zk", *ZK, "--cluster", cluster, "--bootstrap", "--confirm-time", "6s"}, flags...)
	if core != "" {
		args = append([]string{"taskset", "-c", core}, args...)
	}
	c := exec.Command(args[0], args[1:]...)
	c.Stdout, c.Stderr, c.SysProcAttr = os.Stderr, os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	Check(c.Start())
	return c
}

// Field returns a number of a file such as /proc/PID/status, 0 if there is none.
func Field(file, key string) (n int64) {
	data, _ := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			_, _ = fmt.Sscan(rest, &n)
		}
	}
	return n
}

// Memory returns the resident memory of a process in MiB.
func Memory(pid int) float64 {
	return float64(Field(fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")) / 1024
}

// Check ends the program if there is an error, after its deferred calls.
func Check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
