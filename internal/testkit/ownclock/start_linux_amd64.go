package ownclock

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
)

// start starts the program with the offsets of the page.
func start(cmd *exec.Cmd, p *page) error {
	return launch(cmd, p, tracee.detach)
}

// try does the same as start, and kills the program before its first instruction.
func try(cmd *exec.Cmd, p *page) error {
	return launch(cmd, p, func(t tracee) error {
		cmd.Process.Kill()
		cmd.Wait() // the error says that it was killed
		return nil
	})
}

// launch starts the program so that it stops at its exec, gives it the clock, and calls
// handOver. If a step after the start fails, launch kills the program.
func launch(cmd *exec.Cmd, p *page, handOver func(tracee) error) error {
	// Only the thread that started the program may trace it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	fd, err := startStopped(cmd, p.file)
	if err != nil {
		return err
	}
	t := tracee{pid: cmd.Process.Pid}
	err = t.awaitStop()
	if err == nil {
		err = t.giveClock(fd)
	}
	if err == nil {
		err = handOver(t)
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait() // the error says that it was killed
		return fmt.Errorf("ownclock: %s: %w", cmd.Path, err)
	}
	return nil
}

// startStopped starts the program so that it stops at its exec. The program inherits file in
// addition to its other files. startStopped returns the number of that descriptor in the
// program, and leaves cmd.SysProcAttr and cmd.ExtraFiles unchanged.
func startStopped(cmd *exec.Cmd, file *os.File) (fd int, err error) {
	attr, files := cmd.SysProcAttr, cmd.ExtraFiles
	defer func() { cmd.SysProcAttr, cmd.ExtraFiles = attr, files }()

	traced := &syscall.SysProcAttr{}
	if attr != nil {
		*traced = *attr
	}
	if traced.Ptrace {
		return 0, errors.New("ownclock: SysProcAttr.Ptrace must be false: this package traces the program")
	}
	traced.Ptrace = true
	cmd.SysProcAttr = traced
	cmd.ExtraFiles = append(slices.Clip(files), file)
	const firstExtra = 3 // see exec.Cmd
	return firstExtra + len(files), cmd.Start()
}
