//go:build testclock

package main

import (
	"os"
	"time"
)

// Tests that run the program cannot wait for its times. Shipped binaries are built without this file.
func init() {
	for name, d := range map[string]*time.Duration{
		"SESSION_TIMEOUT": &sessionTimeout, "START_TIMEOUT": &startTimeout, "RESERVE": &reserveAhead,
	} {
		if given, err := time.ParseDuration(os.Getenv("FLAKED_TEST_" + name)); err == nil {
			*d = given
		}
	}
}
