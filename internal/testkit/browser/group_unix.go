//go:build unix

package browser

import (
	"os/exec"
	"syscall"
)

// group puts a browser, which consists of many processes, into a process group of its own.
func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// end kills all processes of the group.
func end(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
