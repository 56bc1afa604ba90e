package zktest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"syscall"
)

// dieWithUs returns attributes by which the kernel kills the child when this
// process dies, even by a test timeout, a panic or kill -9. Strictly, the child
// dies with the thread that started it. Go keeps its threads, except those whose
// goroutine ends while locked to the thread.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// exited reports whether the process has ended, reaped or not.
func exited(pid int) bool {
	state := processState(pid)
	return state == 0 || state == 'Z' || state == 'X'
}

// suspended reports whether SIGSTOP has stopped every thread of the process.
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

// stateIn returns the state letter of a stat file, or 0 if the process does not
// exist. The letter follows the process name, which stands in parentheses and may
// itself contain parentheses.
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

// claim reserves a port against other test binaries, since the port has no
// listener while its server is dead. The claim is an abstract socket: the socket
// lives in the network namespace, as ports do, and ends with this process.
func claim(port int) (release func(), err error) {
	l, err := net.Listen("unix", fmt.Sprintf("@flaked-zktest-port-%d", port))
	if err != nil {
		return nil, err
	}
	return func() { l.Close() }, nil
}
