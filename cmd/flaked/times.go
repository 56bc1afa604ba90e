package main

import (
	"time"

	"github.com/flaked/flaked/internal/core/limits"
)

// Times that no flag sets, because the rules that keep IDs unique rely on them. Only tests change these variables:
// those of this package, and by times_testclock.go those that run the program.
var (
	sessionTimeout = 6 * time.Second // of a session with ZooKeeper
	startTimeout   = time.Minute     // node.Config.StartTimeout
	reserveAhead   = limits.DefaultReserve
)
