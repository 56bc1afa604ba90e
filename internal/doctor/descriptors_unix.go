//go:build unix

package doctor

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenFiles returns how many files this process may open, and whether that is known. It is the hard
// limit, as Go programs raise the soft limit to the hard one.
func OpenFiles() (uint64, bool) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return uint64(limit.Max), err == nil
}

// descriptorsOf returns the hard limit of process pid, from /proc.
func descriptorsOf(pid int) (uint64, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		// Max open files            1024                 1048576              files
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			if fields := strings.Fields(rest); len(fields) > 1 {
				if fields[1] == "unlimited" {
					return 1 << 63, true
				}
				limit, err := strconv.ParseUint(fields[1], 10, 64)
				return limit, err == nil
			}
		}
	}
	return 0, false
}
