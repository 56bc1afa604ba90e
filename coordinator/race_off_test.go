//go:build !race

package coordinator

// raceDetector is true with the race detector, which makes tests about ten times slower.
const raceDetector = false
