package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"floodproof/bench/node"
	"floodproof/bench/sink"
	"floodproof/chaos"
	"floodproof/loadgen"
	"floodproof/reports/ledger"
)

const (
	// boundaryWait is the longest that a segment's end waits for an empty backlog.
	boundaryWait = 10 * time.Second
	// stopWithin is how long the children may take to stop before they are killed.
	stopWithin = 10 * time.Second
	// faultWithin is how long a fault or its heal may take: RabbitMQ needs 8 to 20 s until it answers again.
	faultWithin = 45 * time.Second
	// memoryLimit is what the runner's garbage collector aims to stay below.
	memoryLimit = 140 << 20
)

// run is one run from its start to its report.
type run struct {
	plan  Plan
	dir   string // OUT/<time>-<scenario>-<backend>
	work  string // removed at the end, whatever happens
	start time.Time
	cast  *cast
	// sent are the hashes of what was sent for the events in the target's dead letters.
	sent map[uint32][]uint64

	guard  *guard
	fleet  *fleet
	target *referenceTarget
	file   *behind
	ledger *ledger.Writer
	books  *books
	sink   *sink.Sink
	token  string
	// sinkListener is the sink's, from before anything else is known until the sink has stopped.
	sinkListener net.Listener
	links        links
	gen          *loadgen.Generator
	timeline     *chaos.Timeline

	phase   atomic.Int32
	segment atomic.Int32
	plays   sync.WaitGroup
}

// ErrNotStarted is wrapped by errors of a run that sent nothing: the plan, the machine or the directory is to blame.
var ErrNotStarted = errors.New("the run could not start")

// Run carries a plan out and judges it. It returns an error only if there is no verdict: the plan cannot start, or the ledger cannot be
// read. When ctx ends, everything is healed and stopped, and the verdict is about what was done until then (Interrupted).
func Run(ctx context.Context, p Plan) (*Result, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	dir, err := playOut(ctx, p)
	if err != nil {
		return nil, err
	}
	return report(p.Out, dir)
}

// playOut carries a plan out up to the closed ledger, and returns the run's directory. What the run kept in memory is nobody's when it returns: the judge needs the room.
func playOut(ctx context.Context, p Plan) (dir string, err error) {
	cast, err := newCast(p.Scenario)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	r := &run{plan: p, start: time.Now(), cast: cast, sent: map[uint32][]uint64{}}
	err = r.play(ctx)
	return r.dir, err
}

// play does everything up to the closed ledger. Whatever it started is gone when it returns.
func (r *run) play(ctx context.Context) (err error) {
	if err := r.prepare(ctx); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrNotStarted, err), r.cleanup())
	}
	defer func() { err = errors.Join(err, r.cleanup()) }()
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	node.ForgetStart()
	r.serveSink(background, &helpers)
	env, err := r.targetEnv()
	if err != nil {
		return err
	}
	if err := r.target.start(ctx, env); err != nil {
		return r.stopTarget(fmt.Errorf("%w: %w", ErrNotStarted, err))
	}
	sampler := newSampler(r)
	helpers.Go(func() { sampler.loop(background) })
	if r.plan.Watch != nil {
		helpers.Go(func() { r.plan.Watch(background, r.status) })
	}
	end, err := r.loadAndDrain(ctx)
	r.phase.Store(int32(Judging))
	err = r.stopTarget(err) // the sink listens until the last worker is gone
	cancel()
	helpers.Wait()
	if err != nil {
		return err
	}
	sampler.fill(&end)
	return r.closeLedger(end)
}

// prepare makes the directories, the guard, the target's backend and the ledger.
func (r *run) prepare(ctx context.Context) error {
	r.dir = filepath.Join(r.plan.Out, fmt.Sprintf("%s-%s-%s", r.start.UTC().Format("20060102T150405.000Z"), r.plan.Scenario.Name, r.plan.Backend))
	r.work = filepath.Join(r.dir, "work")
	logs := filepath.Join(r.dir, "logs")
	for _, dir := range []string{r.work, logs} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make the run's directory: %w", err)
		}
	}
	work, err := filepath.Abs(r.work)
	if err != nil {
		return err
	}
	if r.guard, err = startGuard(func() *exec.Cmd { return r.plan.Self("node", "guard") }); err != nil {
		return err
	}
	r.guard.dir(work)
	r.fleet = &fleet{guard: r.guard, note: r.note}
	if r.target, err = newReferenceTarget(ctx, &r.plan, r.fleet, work, logs); err != nil {
		return err
	}
	if err := r.listenSink(ctx); err != nil {
		return err
	}
	if err := r.openLinks(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if err := r.openLedger(); err != nil {
		return err
	}
	r.noteServer()
	return r.wire()
}

func (r *run) openLedger() (err error) {
	file, err := os.Create(filepath.Join(r.dir, "ledger"))
	if err != nil {
		return fmt.Errorf("create the ledger: %w", err)
	}
	r.file = writeBehind(file)
	r.ledger, err = ledger.Create(r.file, r.header(environment(r.work, r.plan.Commit)))
	return err
}

// wire connects sink, generator and timeline.
func (r *run) wire() error {
	r.books = newBooks(r.ledger, r.plan.Scenario.Load.Events, expectedSteps(r.plan.Scenario.Steps))
	r.books.kinds = newKinds(r.plan.Scenario.Pipeline.Lanes)
	r.noteDivided()
	r.token = randomID(16)
	r.sink = sink.New(sink.Config{
		Token: r.token, Start: r.start, Lookup: r.books.lookup, Fits: r.books.fits, Record: r.books.Call,
		Steps: stepNames(r.plan.Scenario.Steps), Rand: rand.New(rand.NewPCG(*r.plan.Seed, 0x5117c)),
	})
	steps, err := r.steps()
	if err != nil {
		return err
	}
	r.timeline = &chaos.Timeline{Steps: steps, Timeout: faultWithin, Record: r.ledger.Fault, Now: func() time.Duration { return time.Since(r.start) }}
	traffic, err := r.traffic()
	if err != nil {
		return err
	}
	r.gen = &loadgen.Generator{
		Traffic: traffic, Segments: r.segments(), TailScale: r.cast.tailScale(), MaxInFlight: r.plan.Scenario.Load.MaxInFlight,
		DisableEndpoints: r.cast.disables, NoCatchUp: r.plan.Scenario.Load.NoCatchUp,
		Books: r.books, Start: r.start, Begin: r.beginSegment, End: r.endSegment,
		Transport: transportTo(traffic.Mix, r.plan.Scenario.Load.MaxInFlight),
	}
	return r.checkBudget()
}

// checkBudget asks whether the slots can carry the load at its peak, before anything starts, and notes what is worth knowing about that.
func (r *run) checkBudget() error {
	var limit time.Duration
	for _, l := range r.plan.Scenario.Expect.Latency {
		if l.Of == "ack" && l.Percentile <= 99 {
			limit = max(limit, l.Limit)
		}
	}
	budget, err := r.gen.Budget(limit)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	for _, note := range budget.Notes {
		r.note("%s", note)
	}
	return nil
}
