package timeguard

import (
	"os"
	"strings"
)

// BootID returns the kernel's ID of this boot, which is new at each boot, and "" if it is not known. Clock.Boot counts
// anew when it changes.
func BootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
