package main

import "github.com/flaked/flaked/internal/dialog"

// within reports whether n is from 1 to most.
func within(n, most int) bool { return n >= 1 && n <= most }

func checkAddrFlag(addr string) error {
	if _, _, err := dialog.SplitAddr(addr); err != nil {
		return usageError("--addr: %w", err)
	}
	return nil
}

func checkClusterFlag(name string) error {
	if err := dialog.CheckCluster(name); err != nil {
		return usageError("--cluster %w", err)
	}
	return nil
}
