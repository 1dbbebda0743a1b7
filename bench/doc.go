// Package bench is the command line of floodproof: one file per verb, each a thin layer over the room that does the work.
//
// Everything goes through [Program.Main], which takes its streams and arguments as values and returns the exit status, so that the tests run the whole command line in
// one process.
package bench
