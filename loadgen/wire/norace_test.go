//go:build !race

package wire

// raceDetector: the tests run with the race detector.
const raceDetector = false
