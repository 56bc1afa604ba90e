//go:build !race

package e2e

// raceDetector tells that the tests run with the race detector.
const raceDetector = false
