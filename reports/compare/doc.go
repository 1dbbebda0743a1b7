// Package compare says what two sides of a measurement may claim about each other: two builds, two backends, the same thing before and after a change.
//
// A single pair of runs on a machine that others use too proves nothing, and a gate that trusts it is red by chance. So both sides run in turn, round after round; what
// is compared are the ratios within the rounds, in which a slow minute of the machine meets both. Their median is the result, a bootstrap confidence interval says
// how sure that is, and where the interval includes "no difference" the answer is "~", whatever the medians look like.
//
// Note: rejected are the t-test, because latencies are not normal and one bad round would decide; and medians of all rounds of each side compared without their pairs,
// because the drift of the machine is then taken for a difference.
package compare
