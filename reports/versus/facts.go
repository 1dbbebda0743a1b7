package versus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"floodproof/reports/ledger"
)

// Facts are what a comparison needs of a run beyond its verdict, read from the ledger. Nil is what could not be measured.
type Facts struct {
	// AcksPerS and EffectsPerS are the most deliveries answered with success, and the most effects, within any one second.
	AcksPerS    *float64 `json:"acks_per_s"`
	EffectsPerS *float64 `json:"effects_per_s"`
	// AcksBackS and WorkBackS are seconds: the longest silence around a kill of the broker. After the kill nothing was acknowledged, or nothing took effect, for so
	// long; the worst of several kills. Nil without a kill, and where nothing ever came again, which NeverBack says.
	AcksBackS *float64 `json:"acks_back_s"`
	WorkBackS *float64 `json:"work_back_s"`
	NeverBack bool     `json:"never_back"`
	// BrokerCPUS, PipelineCPUS and RunnerCPUS are processor seconds: of the queue's server, of receivers and workers together, of the harness.
	BrokerCPUS   *float64 `json:"broker_cpu_s"`
	PipelineCPUS *float64 `json:"pipeline_cpu_s"`
	RunnerCPUS   *float64 `json:"runner_cpu_s"`
	// BrokerMB, PipelineMB and RunnerMB are megabytes (10^6 bytes): the highest sum of the resident sets at one reading.
	BrokerMB   *float64 `json:"broker_mb"`
	PipelineMB *float64 `json:"pipeline_mb"`
	RunnerMB   *float64 `json:"runner_mb"`
	// Window is the stretch of the gated segments.
	Window Window `json:"window"`
}

// Window is what happened from the first to the last due time of the gated segments. The zero value means that nothing was gated.
type Window struct {
	Seconds float64 `json:"seconds"`
	// OfferedPerS and AckedPerS count events of genuine first attempts and of successes, EffectsPerS effects.
	OfferedPerS float64 `json:"offered_per_s"`
	AckedPerS   float64 `json:"acked_per_s"`
	EffectsPerS float64 `json:"effects_per_s"`
	// BacklogPerS is by how many events a second the backlog grew, the slope of a straight line through it; BacklogEnd is what it was at the end.
	BacklogPerS float64 `json:"backlog_per_s"`
	BacklogEnd  int64   `json:"backlog_end"`
	// Unsuccessful is the share of genuine attempts in it that were not answered with success.
	Unsuccessful float64 `json:"unsuccessful"`
}

// Read reads the facts of the run in a directory.
func Read(dir string) (Facts, error) {
	path := filepath.Join(dir, "ledger")
	f, err := os.Open(path)
	if err != nil {
		return Facts{}, fmt.Errorf("read facts: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	c := collector{processes: map[string]*process{}, kills: map[uint32]*span{}}
	c.header, _, err = ledger.Read(f, c.visitor())
	if err != nil && !errors.Is(err, ledger.ErrNoEnd) {
		return Facts{}, fmt.Errorf("read facts of %s: %w", path, err)
	}
	if c.strange != nil {
		return Facts{}, fmt.Errorf("read facts of %s: %w", path, c.strange)
	}
	return c.facts(), nil
}

// delivery is what an attempt needs to know.
type delivery struct {
	class ledger.Class
	count uint16
}

// attempt is one of a genuine delivery.
type attempt struct {
	due, done time.Duration
	segment   uint8
	count     uint16
	first, ok bool
}

type span struct{ from, until time.Duration }

// collector takes what the facts need out of a ledger. A million events take about 100 MB.
type collector struct {
	header     *ledger.Header
	deliveries []delivery
	attempts   []attempt
	// acks and effects are instants.
	acks, effects []time.Duration
	kills         map[uint32]*span
	processes     map[string]*process
	resident      residents
	strange       error
}

// maxGap is how far a delivery's number may lie beyond those before: numbers are dense, and an absurd one must not take all memory.
const maxGap = 1 << 20

func (c *collector) visitor() ledger.Visitor {
	return ledger.Visitor{Delivery: c.delivery, Attempt: c.attempt, Fault: c.fault, Sample: c.sample, Call: func(k *ledger.Call) {
		if k.Outcome == ledger.Took {
			c.effects = append(c.effects, k.At)
		}
	}}
}

func (c *collector) delivery(d *ledger.Delivery) {
	if int(d.Number) > len(c.deliveries)+maxGap {
		c.strange = fmt.Errorf("delivery %d follows %d others", d.Number, len(c.deliveries))
		return
	}
	for int(d.Number) >= len(c.deliveries) {
		c.deliveries = append(c.deliveries, delivery{})
	}
	c.deliveries[d.Number] = delivery{d.Class, d.Count}
}

func (c *collector) attempt(a *ledger.Attempt) {
	if int(a.Delivery) >= len(c.deliveries) {
		return
	}
	d := c.deliveries[a.Delivery]
	switch d.class {
	case ledger.Genuine:
		c.attempts = append(c.attempts, attempt{a.Due, a.Done, a.Segment, d.count, a.Try == 1, a.Result == ledger.OK})
	case ledger.DuplicateSameID, ledger.DuplicateNewID:
	default:
		return // what is refused on purpose is no throughput
	}
	if a.Result == ledger.OK {
		c.acks = append(c.acks, a.Done)
	}
}

func (c *collector) fault(f *ledger.Fault) {
	if f.Name != brokerKill {
		return
	}
	switch f.Phase {
	case ledger.Begin:
		c.kills[f.Number] = &span{f.At, -1}
	case ledger.Heal:
		if k := c.kills[f.Number]; k != nil {
			k.until = f.At
		}
	case ledger.Broken, ledger.NotApplicable, ledger.Unmet:
	}
}

// facts computes what follows from the records.
func (c *collector) facts() Facts {
	slices.Sort(c.acks)
	slices.Sort(c.effects)
	f := Facts{AcksPerS: busiest(c.acks), EffectsPerS: busiest(c.effects), Window: c.window()}
	for _, k := range c.kills {
		if k.until < 0 {
			continue
		}
		acks, ackedAgain := silence(c.acks, *k)
		work, workedAgain := silence(c.effects, *k)
		f.NeverBack = f.NeverBack || !ackedAgain || !workedAgain
		longest(&f.AcksBackS, acks, ackedAgain)
		longest(&f.WorkBackS, work, workedAgain)
	}
	c.resources(&f)
	return f
}

// busiest is the highest number of instants in any window of a second, nil without any.
func busiest(sorted []time.Duration) *float64 {
	best, from := 0, 0
	for i, t := range sorted {
		for t-sorted[from] >= time.Second {
			from++
		}
		best = max(best, i-from+1)
	}
	if best == 0 {
		return nil
	}
	return new(float64(best))
}

// silence is the longest time without an instant that was felt between a kill and the heal, false if nothing came after the heal.
//
// Note: "the first success of an attempt that began after the kill" was tried on paper. The kill takes a few milliseconds, and what slips through in them would
// count as a recovery.
func silence(sorted []time.Duration, kill span) (time.Duration, bool) {
	i, _ := slices.BinarySearch(sorted, kill.from)
	last, worst := kill.from, time.Duration(0)
	for _, t := range sorted[i:] {
		worst = max(worst, t-last)
		if last = t; t > kill.until {
			return worst, true
		}
	}
	return 0, false
}

// longest keeps the longer one.
func longest(s **float64, d time.Duration, ok bool) {
	if ok && (*s == nil || d.Seconds() > **s) {
		*s = new(d.Seconds())
	}
}
