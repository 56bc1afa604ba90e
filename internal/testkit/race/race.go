// Package race tells tests whether they run with the race detector, which makes them about ten
// times slower, allocates, and makes sync.Pool drop items at random.
package race

import (
	"runtime/debug"
	"slices"
)

// Enabled reports whether the program was built with the race detector.
var Enabled = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()
