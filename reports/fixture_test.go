package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// day is a made-up run: the events of a diurnal day with a busy hour, played in about 95 seconds.
type day struct {
	events int
	seed   uint64
	// lost and doubled events are planted among those of the busy hour. cut leaves the end record out, undrained says that the drain failed.
	lost, doubled  int
	cut, undrained bool
	// hostile puts markup and control characters wherever a foreign name can stand.
	hostile bool
	// faults are injected where they say; nil means none.
	faults []planted
}

type planted struct {
	name, target string
	side         ledger.Side
	at, length   time.Duration
}

const hostileText = "<script>alert(1)</script>\"'`|@x \x1b[2J\x00\n![a](http://e.vil) ${HOME} \u202eevil"

func usualFaults() []planted {
	return []planted{
		{"downstream.errors", "sink", ledger.Downstream, 30 * time.Second, 5 * time.Second},
		{"worker.kill", "worker-1", ledger.Worker, 42 * time.Second, 4 * time.Second},
		{"worker.kill", "worker-2", ledger.Worker, 43 * time.Second, 4 * time.Second},
		{"broker.stall", "sqlite", ledger.Broker, 58 * time.Second, 2 * time.Second},
	}
}

func (d *day) header() ledger.Header {
	fsync := 412.0
	h := ledger.Header{
		Floodproof: "0.1.0", RunID: "r-7f3a", Scenario: "10k-day", Seed: d.seed, Backend: "sqlite", Durability: "power-loss",
		ScenarioText: "format: 1\nwhy: A whole day of webhooks, with a tenfold morning burst and faults in its busiest hour.\n",
		StartedAt:    time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC),
		Target:       ledger.Target{Kind: "reference", Name: "reference", Observer: "sink"},
		Providers:    []ledger.Provider{{Name: "stripe", Timeout: 10 * time.Second}, {Name: "shopify", Timeout: 5 * time.Second}, {Name: "github", OneShot: true, Timeout: 10 * time.Second}},
		Steps:        []string{""},
		Segments: []ledger.Segment{
			{Name: "night", From: 0, Until: 8 * time.Hour, Scale: 3600},
			{Name: "morning", From: 8 * time.Hour, Until: 9 * time.Hour, Scale: 360},
			{Name: "busiest-hour", From: 9 * time.Hour, Until: 10 * time.Hour, Scale: 60, Gated: true},
			{Name: "afternoon", From: 10 * time.Hour, Until: 24 * time.Hour, Scale: 3600},
		},
		Expect: ledger.Expect{Steps: 1, Delivered: true, Latency: []ledger.LatencyLimit{{Of: "ack", Percentile: 99, Limit: 200 * time.Millisecond}, {Of: "effect", Percentile: 99, Limit: 10 * time.Second}}},
		Env: ledger.Env{
			CPUs: 8, Go: "go1.26", OS: "linux/amd64", FS: "ext4", FsyncUsP50: &fsync, Commit: "0123456789abcdef", BackendVersion: "3.51.0",
			BackendSettings: map[string]string{"journal_mode": "wal", "synchronous": "full"},
		},
	}
	if d.hostile {
		h.RunID, h.Scenario, h.Backend, h.Env.FS = hostileText, hostileText, hostileText, hostileText
		h.ScenarioText = "why: " + fmt.Sprintf("%q", hostileText)
		h.Providers[0].Name = hostileText
		h.Env.BackendSettings[hostileText] = hostileText
	}
	return h
}

// record is one line of the made-up ledger, to be written in the order of time.
type record struct {
	at    time.Duration
	write func(*ledger.Writer)
}

// write makes the ledger.
func (d *day) write(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := ledger.Create(&out, d.header())
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(d.seed, 1))
	records := append(d.frame(), d.traffic(rng)...)
	sort.SliceStable(records, func(i, j int) bool { return records[i].at < records[j].at })
	for _, r := range records {
		r.write(w)
	}
	if d.cut {
		w.Flush()
		return out.Bytes()
	}
	end := ledger.End{At: 100 * time.Second, LoadEnd: 93 * time.Second, DrainFrom: 94 * time.Second, Drain: ledger.Drained, DeadLettersListed: true, DrainWhy: "every acked event is accounted for"}
	if d.undrained {
		end.Drain, end.DrainWhy, end.Interrupted = ledger.NotDrained, "the run was interrupted", true
	}
	rss, disk := 41.5, int64(12_345_678)
	end.Resources = ledger.Resources{ReceiverRSSMB: &rss, WorkerRSSMB: &rss, DiskBytes: &disk}
	if err := w.Close(end); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// segments of the made-up day in real time, with the share of events that each gets.
var played = []struct {
	from, until time.Duration
	share       float64
}{{1 * time.Second, 9 * time.Second, .12}, {9 * time.Second, 19 * time.Second, .13}, {19 * time.Second, 79 * time.Second, .5}, {79 * time.Second, 93 * time.Second, .25}}

func (d *day) frame() []record {
	var out []record
	for i, p := range played {
		out = append(out,
			record{p.from, func(w *ledger.Writer) {
				w.SegmentMark(ledger.SegmentMark{At: p.from, Segment: uint8(i), Begin: true})
			}},
			record{p.until, func(w *ledger.Writer) { w.SegmentMark(ledger.SegmentMark{At: p.until, Segment: uint8(i)}) }})
	}
	for i, f := range d.faults {
		r := ledger.Fault{At: f.at, Number: uint32(i), Step: uint8(i), Side: f.side, Phase: ledger.Begin, Name: f.name, Target: f.target}
		h := r
		h.At, h.Phase = f.at+f.length, ledger.Heal
		out = append(out, record{r.At, func(w *ledger.Writer) { w.Fault(r) }}, record{h.At, func(w *ledger.Writer) { w.Fault(h) }})
	}
	return append(out, record{50 * time.Second, func(w *ledger.Writer) {
		w.Note(ledger.Note{At: 50 * time.Second, Text: "worker-2 needed 1.2 s to come back"})
	}})
}

// traffic makes the events with their deliveries, attempts and calls.
func (d *day) traffic(rng *rand.Rand) []record {
	var out []record
	n := uint32(0)
	busy := 0
	for seg, p := range played {
		count := int(p.share * float64(d.events))
		for i := range count {
			x := (float64(i) + rng.Float64()) / float64(count)
			if seg == 2 {
				x = burst(x)
			}
			due := p.from + time.Duration(x*float64(p.until-p.from))
			loss, double := false, false
			if seg == 2 && i > count/3 {
				loss, double = busy < d.lost, busy >= d.lost && busy < d.lost+d.doubled
				busy++
			}
			out = append(out, d.event(fact{n, uint8(seg), due, loss, double}, rng)...)
			n++
		}
	}
	return out
}

// burst moves a third of an hour's events into a sixth of its time.
func burst(x float64) float64 {
	switch {
	case x < 1.0/3:
		return x * .9
	case x < 2.0/3:
		return .3 + (x-1.0/3)*.5
	default:
		return .4667 + (x-2.0/3)*1.6
	}
}

func lognormal(rng *rand.Rand, median time.Duration, sigma float64) time.Duration {
	return time.Duration(float64(median) * math.Exp(sigma*rng.NormFloat64()))
}

// fact is one event of the day and its fate.
type fact struct {
	n             uint32
	seg           uint8
	due           time.Duration
	lost, doubled bool
}

func (d *day) event(x fact, rng *rand.Rand) []record {
	n, due := x.n, x.due
	id := fmt.Sprintf("evt_%06d", n)
	if d.hostile && n%7 == 0 {
		id += hostileText
	}
	e := ledger.Event{Number: n, ID: id, Provider: uint8(n % 3), Resource: n / 4, Version: n % 4}
	dl := ledger.Delivery{Number: n, Class: ledger.Genuine, Provider: e.Provider, First: n, Count: 1}
	done := due + max(lognormal(rng, 2500*time.Microsecond, .8), 300*time.Microsecond)
	worked := done + lognormal(rng, 60*time.Millisecond, .5)
	call := ledger.Call{Event: n, Outcome: ledger.Took, Fault: ledger.None}
	var out []record
	for i, f := range d.faults {
		until := f.at + f.length
		switch {
		case f.side == ledger.Broker && due >= f.at && due < until:
			done = until + lognormal(rng, 40*time.Millisecond, .5)
			worked = done + lognormal(rng, 60*time.Millisecond, .5)
		case f.side == ledger.Worker && worked >= f.at && worked < until:
			worked = until + time.Duration(rng.Float64()*1.5*float64(worked-f.at))
		case f.side == ledger.Downstream && worked >= f.at && worked < until && rng.Float64() < .2:
			failed := ledger.Call{At: worked, Event: n, Outcome: ledger.Failed, Fault: uint32(i)}
			out = append(out, record{failed.At, func(w *ledger.Writer) { w.Call(failed) }})
			worked += 500*time.Millisecond + lognormal(rng, 300*time.Millisecond, .3)
		}
	}
	a := ledger.Attempt{Delivery: n, Try: 1, Segment: x.seg, Due: due, Start: due + lognormal(rng, 80*time.Microsecond, .4), Done: done, Status: 200, Result: ledger.OK, Then: ledger.Settled}
	out = append(out,
		record{due, func(w *ledger.Writer) { w.Event(e); w.Delivery(dl) }},
		record{done, func(w *ledger.Writer) { w.Attempt(a) }})
	if x.lost {
		return out
	}
	call.At = worked
	out = append(out, record{worked, func(w *ledger.Writer) { w.Call(call) }})
	if x.doubled {
		again := call
		again.At += 700 * time.Millisecond
		out = append(out, record{again.At, func(w *ledger.Writer) { w.Call(again) }})
	}
	return out
}

// run writes a ledger into a folder, judges it as the harness would, and loads the report.
func (d *day) run(t testing.TB) *Report {
	t.Helper()
	return load(t, d.write(t))
}

func load(t testing.TB, b []byte) *Report {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, LedgerFile), b, 0o644); err != nil {
		t.Fatal(err)
	}
	v, err := verdict.Judge(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, VerdictFile), text, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// samples are the recorded values, to the precision of a millisecond.
func samples(h *hdrhistogram.Histogram) []time.Duration {
	var out []time.Duration
	for _, b := range h.Distribution() {
		for range b.Count {
			out = append(out, (time.Duration(b.To) * time.Microsecond).Round(time.Millisecond))
		}
	}
	return out
}
