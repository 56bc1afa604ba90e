package figures

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes the machine that a benchmark ran on.
type Machine struct {
	CPU, Kernel, System, Go string
	Cores                   int
}

// ThisMachine reads /proc and /etc/os-release. CPU and System are "unknown" where they are missing.
func ThisMachine() Machine {
	return Machine{
		CPU: after("/proc/cpuinfo", "model name", ":"), Cores: runtime.NumCPU(), Go: strings.TrimPrefix(runtime.Version(), "go"),
		Kernel: kernel(), System: strings.Trim(after("/etc/os-release", "PRETTY_NAME", "="), `"`),
	}
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, Linux %s, Go %s", m.CPU, m.Cores, m.System, m.Kernel, m.Go)
}

// after returns the value of the first line of the file whose key is name, or "unknown".
func after(path, name, separator string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, separator); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// kernel returns Linux's version as major.minor. The rest of a release names somebody's build.
func kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	major, rest, _ := strings.Cut(string(text), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + strings.TrimSpace(minor)
}
