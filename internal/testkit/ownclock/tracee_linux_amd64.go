package ownclock

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// tracee is a child process that this thread has stopped and traces.
type tracee struct{ pid int }

// awaitStop blocks until the tracee has stopped on a trap: at its exec, or after a single step.
// It returns an error if the tracee ended, or stopped for another signal.
func (t tracee) awaitStop() error {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(t.pid, &status, 0, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait4: %w", err)
		}
	}
	switch {
	case !status.Stopped():
		return errors.New("it was killed before it began")
	case status.StopSignal() != unix.SIGTRAP:
		return fmt.Errorf("it was sent %q before it began", status.StopSignal())
	}
	return nil
}

// call makes the tracee execute a system call and returns the result. instruction is the address
// of a syscall instruction in the tracee. call restores the registers.
func (t tracee) call(instruction uint64, number uintptr, args ...uint64) (uint64, error) {
	var saved unix.PtraceRegs
	if err := unix.PtraceGetRegs(t.pid, &saved); err != nil {
		return 0, fmt.Errorf("reading registers: %w", err)
	}
	regs := saved
	regs.Rip, regs.Rax = instruction, uint64(number)
	regs.Orig_rax = ^uint64(0) // the kernel must not restart a system call
	for i, to := range []*uint64{&regs.Rdi, &regs.Rsi, &regs.Rdx, &regs.R10, &regs.R8, &regs.R9} {
		if i < len(args) {
			*to = args[i]
		}
	}
	if err := unix.PtraceSetRegs(t.pid, &regs); err != nil {
		return 0, fmt.Errorf("setting registers: %w", err)
	}
	if err := unix.PtraceSingleStep(t.pid); err != nil {
		return 0, fmt.Errorf("a single step: %w", err)
	}
	if err := t.awaitStop(); err != nil {
		return 0, err
	}
	if err := unix.PtraceGetRegs(t.pid, &regs); err != nil {
		return 0, fmt.Errorf("reading registers: %w", err)
	}
	if err := unix.PtraceSetRegs(t.pid, &saved); err != nil {
		return 0, fmt.Errorf("setting registers: %w", err)
	}
	const lastError = 4095
	if failed := -int64(regs.Rax); 0 < failed && failed <= lastError {
		return 0, fmt.Errorf("system call %d there: %w", number, unix.Errno(failed))
	}
	return regs.Rax, nil
}

// ReadAt reads the tracee's memory.
func (t tracee) ReadAt(b []byte, addr int64) (int, error) {
	return unix.PtracePeekData(t.pid, uintptr(addr), b)
}

// write changes the tracee's memory, even where it is read-only. A page that the tracee shares
// with other processes is copied for the tracee first.
func (t tracee) write(addr uint64, b []byte) error {
	if _, err := unix.PtracePokeData(t.pid, uintptr(addr), b); err != nil {
		return fmt.Errorf("writing to its memory: %w", err)
	}
	return nil
}

// detach ends the tracing and lets the tracee run.
func (t tracee) detach() error {
	if err := unix.PtraceDetach(t.pid); err != nil {
		return fmt.Errorf("detaching: %w", err)
	}
	return nil
}
