package local

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// Usage has the CPU time of a process since its start, and how often its threads have waited.
type Usage struct {
	CPU   time.Duration
	Waits int64 // Linux calls them voluntary context switches
}

// Usage returns what the threads that the process has now have used. It is zero after its end.
func (p *Process) Usage() (u Usage) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.PID()))
	for _, task := range tasks {
		var ns int64
		text, _ := os.ReadFile(filepath.Join(task, "schedstat"))
		_, _ = fmt.Sscan(string(text), &ns)
		u.CPU += time.Duration(ns)
		text, _ = os.ReadFile(filepath.Join(task, "status"))
		waits, _ := number(string(text), "voluntary_ctxt_switches:", 10)
		u.Waits += waits
	}
	return u
}

// Kill ends the process by SIGKILL, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

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
