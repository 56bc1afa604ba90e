//go:build unix

package browser

import (
	"os/exec"
	"syscall"
)

// group is for a browser, which is many processes.
func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// end ends all of them.
func end(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
