package versus

import (
	"fmt"
	"strings"

	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// The faults that try what an acknowledgement survives, as the ledger names them.
const (
	brokerKill   = "broker.kill"
	powerCut     = "disk.power-cut"
	receiverKill = "receiver.kill"
	workerKill   = "worker.kill"
)

// Durability is a promise beside what tried it.
type Durability struct {
	// Claimed is the backend's promise: "none", "process", "power-loss", "failover".
	Claimed string `json:"claimed"`
	// Tried is the strongest of these that the runs tried, empty if none did.
	Tried string `json:"tried"`
	// Lost counts acknowledged events that were gone afterwards, in all runs.
	Lost int64 `json:"lost"`
}

// rank orders promises; what is not known promises nothing.
func rank(durability string) int {
	switch durability {
	case "process":
		return 1
	case "power-loss":
		return 2
	case "failover":
		return 3
	default:
		return 0
	}
}

// tried is the strongest promise that the faults of a run put to the test. An embedded queue lives in the receivers and workers: their kill is its own.
func tried(r *Run) string {
	done := map[string]bool{}
	for _, f := range r.Verdict.Faults {
		done[f.Fault] = done[f.Fault] || f.Status == "done"
	}
	switch {
	case done[powerCut]:
		return "power-loss"
	case done[brokerKill], r.Embedded && (done[receiverKill] || anyOf(done, workerKill)):
		return "process"
	default:
		return ""
	}
}

func anyOf(done map[string]bool, prefix string) bool {
	for name, yes := range done {
		if yes && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// promised reports whether what was lost was promised to be kept.
func (d Durability) promised() bool { return rank(d.Claimed) >= rank(d.Tried) && rank(d.Claimed) > 0 }

// String says claim and trial in a few words: "power-loss claimed; process tried, survived".
func (d Durability) String() string {
	claim := d.Claimed
	if claim == "" {
		claim = "nothing"
	}
	switch {
	case d.Tried == "" && d.Lost == 0:
		return claim + " claimed; not tried"
	case d.Tried == "":
		return fmt.Sprintf("%s claimed; not tried, %s lost", claim, wording.Group(d.Lost))
	case d.Lost == 0:
		return fmt.Sprintf("%s claimed; %s tried, survived", claim, d.Tried)
	default:
		return fmt.Sprintf("%s claimed; %s tried, %s lost", claim, d.Tried, wording.Group(d.Lost))
	}
}

// judged is the outcome of a run as the comparison counts it, and why it is another than the verdict's: a loss that nobody promised to prevent is shown, not held against
// the backend. The memory broker would otherwise fail every comparison that kills it.
func judged(r *Run) (o verdict.Outcome, excused bool) {
	v := r.Verdict
	d := Durability{Claimed: v.Durability, Tried: tried(r)}
	if v.Outcome != verdict.Fail || d.Tried == "" || d.promised() {
		return v.Outcome, false
	}
	o = verdict.Pass
	for _, f := range v.Findings {
		if f.Invariant == "no-loss" && f.Outcome == verdict.Fail {
			excused = true
			continue
		}
		o = verdict.Merge(o, f.Outcome)
	}
	if v.Interrupted {
		o = verdict.Merge(o, verdict.Unknown)
	}
	return o, excused && o != verdict.Fail
}
