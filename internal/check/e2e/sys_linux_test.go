package e2e

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dieWithUs makes the kernel kill the child when this process ends in any way.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// suspended reports whether every thread of the process is stopped.
func suspended(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, task := range tasks {
		stat, err := os.ReadFile(dir + "/" + task.Name() + "/stat")
		_, rest, ok := strings.Cut(string(stat), ") ")
		if err == nil && (!ok || !strings.HasPrefix(rest, "T")) {
			return false
		}
	}
	return true
}

// residentKiB returns the resident memory of a process in KiB, or 0 if it is unknown.
func residentKiB(pid int) int {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rss, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rss), " kB"))
			return kib
		}
	}
	return 0
}
