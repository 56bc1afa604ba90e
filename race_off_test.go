//go:build !race

package flaked

const raceEnabled = false
