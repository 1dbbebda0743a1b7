// Package matrix shows which queue backend survives which family of faults: one cell for each pair, taken from the verdict of a run of its own.
//
// A cell says "nothing lost" only where that was shown: every fault of its scenario was injected and met, every acknowledged event is accounted for, and nothing happened twice.
// Beside what happened stands what the backend claims. A loss that the claim never excluded is what the weak variants are there to show; one that it excludes is a failure.
//
// Note: a cell that shows nothing is no pass and has no colour of one. Cells that were left out because they "cannot fail anyway" would make the matrix a list of beliefs.
package matrix
