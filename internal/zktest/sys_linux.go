package zktest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"syscall"
)

// dieWithUs has the kernel kill the child when we die, however we die: a test
// timeout, a panic, kill -9. (Strictly, when the thread that started it dies.
// Go keeps its threads, except those whose goroutine ends while locked to one.)
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// exited: the process is over and waits to be reaped, or is reaped.
func exited(pid int) bool {
	state := processState(pid)
	return state == 0 || state == 'Z' || state == 'X'
}

// suspended: every thread of the process obeys a SIGSTOP.
func suspended(pid int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false
	}
	for _, task := range tasks {
		if state := stateIn(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task.Name())); state != 'T' && state != 0 {
			return false
		}
	}
	return true
}

func processState(pid int) byte { return stateIn(fmt.Sprintf("/proc/%d/stat", pid)) }

// stateIn reads the state letter of a stat file: the field after the name,
// which stands in parentheses and may hold some itself. 0: no such process.
func stateIn(file string) byte {
	stat, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	if i := bytes.LastIndexByte(stat, ')'); i >= 0 && i+2 < len(stat) {
		return stat[i+2]
	}
	return 0
}

// claim keeps other test binaries off a port that may have no listener now,
// because its server is killed, by an abstract socket: it lives in the network
// namespace, as ports do, and goes when we go.
func claim(port int) (release func(), err error) {
	l, err := net.Listen("unix", fmt.Sprintf("@flaked-zktest-port-%d", port))
	if err != nil {
		return nil, err
	}
	return func() { l.Close() }, nil
}
