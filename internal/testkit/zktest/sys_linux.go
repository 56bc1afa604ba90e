package zktest

import (
	"fmt"
	"net"
	"slices"
	"syscall"

	"github.com/prometheus/procfs"
)

// DieWithUs returns attributes by which the kernel kills the child when this
// process dies, even by a test timeout, a panic or kill -9. Strictly, the child
// dies with the thread that started it. Go keeps its threads, except those whose
// goroutine ends while locked to the thread.
func DieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// exited reports whether the process has ended, reaped or not.
func exited(pid int) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return true
	}
	stat, err := p.Stat()
	return err != nil || stat.State == "Z" || stat.State == "X"
}

// Suspended reports whether SIGSTOP has stopped every thread of the process.
func Suspended(pid int) bool {
	threads, err := procfs.AllThreads(pid)
	return err == nil && !slices.ContainsFunc(threads, func(thread procfs.Proc) bool {
		stat, err := thread.Stat() // fails for a thread that has ended
		return err == nil && stat.State != "T"
	})
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
