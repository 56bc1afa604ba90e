//go:build !linux

package timeguard

// BootID returns "": only Linux has an ID of the boot that Clock.Boot counts from.
func BootID() string { return "" }
