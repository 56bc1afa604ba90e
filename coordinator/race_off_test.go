//go:build !race

package coordinator

// raceDetector tells that everything takes ten times as long.
const raceDetector = false
