//go:build !race

package e2e

// raceDetector is true if the tests run with the race detector.
const raceDetector = false
