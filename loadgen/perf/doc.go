// Package perf measures the load generator against the clock: how fast it is on one processor beside vegeta and, where it is installed, k6, how evenly it
// sends, what it remembers, and whether it adds to the latencies that it reports. It has benchmarks only; nothing in it passes or fails.
//
//	go test -run '^$' -bench . ./loadgen/perf
//
// The servers run in processes of their own, so that they take nothing from the generator's processor. What is compared is measured in turn, several
// rounds of each, and the medians are reported: a machine that others use makes single figures worthless. CPU time for each request (cpu-µs/req) says
// more on such a machine than any rate.
package perf
