package local

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is a program that a benchmark started. The kernel ends it with the benchmark.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed at its end
}

// Start starts a program whose output goes to the file log.
func Start(log, program string, args ...string) (*Process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &Process{exec.Command(program, args...), make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Stop ends the process by SIGTERM, or by SIGKILL after 20 s, and waits for its end.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	killer := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer killer.Stop()
	<-p.ended
}
