// Package versus puts runs beside each other: the same work on several backends ([Compare]), and one state of things before and after a change ([Diff]).
//
// Both rest on finished runs, their verdicts and ledgers, and on nothing else. What a few runs on a shared machine may claim is decided by
// floodproof/reports/compare: where no difference is shown stands a "~", and a single pair of runs shows none, however far its numbers lie apart.
//
// Note: throughput is compared in the busiest second. The mean over a run is what the timetable offers, and the same for every backend that keeps up.
package versus
