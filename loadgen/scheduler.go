package loadgen

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

const (
	// lead is how long before its due time an attempt is rendered. It is far below attemptGap, so that nothing that an answer brings can become due
	// while the scheduler waits for the last bit.
	lead = 2 * time.Millisecond
	// grace is how long an interrupted run waits for requests under way before it cuts them off.
	grace = 500 * time.Millisecond
)

// job is one delivery on its way, from the instant it was planned until nothing of it will be sent any more.
type job struct {
	plan
	// number is the ledger's, once try is not 0. try is the attempt that is due or under way, and step its place in the provider's schedule, which counts
	// an attempt that is repeated at once only once.
	number    uint32
	try, step int
	repeated  bool
	// introduced: try and step were counted, and then the provider paused.
	introduced bool
	// target is where the attempt goes if that is not the provider's URL: hops is how many redirects led there, spent the time that they took.
	target *url.URL
	hops   int
	spent  time.Duration
	// last is how the attempt before ended, without the headers, which would take memory for hours.
	last provider.Answer
	// due is on the wall, segment the one it lies in.
	due     time.Duration
	segment int
	blocked bool
	// parked: its time has come in a later segment, once that begins.
	parked bool
}

// run is the state of one Run. All of it belongs to the scheduler's goroutine; attempts run in their own, each with one sender, and come
// back through outcomes.
type run struct {
	*Generator
	stream *stream
	clock  *clock
	// cutOff ends all requests under way.
	cutOff context.CancelFunc
	// due are jobs of the current segment by due time, later those whose segment has not begun by day time, waiting those that were due
	// when no slot was free.
	due, later heap[*job]
	waiting    fifo[*job]
	// idle are the free slots; busy counts the others. goroutines are those of the slots, one for each that was ever used.
	idle       []*sender
	busy       int
	goroutines sync.WaitGroup
	outcomes   chan outcome
	timer      *time.Timer
	deliveries uint32
	stopping   bool
}

// newRun makes the state of a run of a checked generator.
func newRun(ctx context.Context, g *Generator) (*run, error) {
	s, err := newStream(&g.Traffic, g.Books)
	if err != nil {
		return nil, err
	}
	// What is under way outlives the caller's context by the grace.
	base, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	r := &run{
		Generator: g, stream: s, clock: newClock(g.Segments, g.TailScale), cutOff: cutOff,
		outcomes: make(chan outcome, 2*g.MaxInFlight), idle: make([]*sender, g.MaxInFlight), timer: time.NewTimer(0),
	}
	r.due.before = func(a, b *job) bool { return a.due < b.due || a.due == b.due && a.seq < b.seq }
	r.later.before = func(a, b *job) bool { return a.day < b.day || a.day == b.day && a.seq < b.seq }
	for i := range r.idle {
		r.idle[i] = &sender{transport: g.Transport, base: base, epoch: g.Start}
	}
	return r, nil
}

// now is the wall clock.
func (r *run) now() time.Duration { return time.Since(r.Start) }

// day plays all segments and the tail.
func (r *run) day(ctx context.Context) error {
	for i := range r.clock.segments {
		if err := r.pause(ctx, "begin", r.Begin, i); err != nil {
			return err
		}
		r.begin(i)
		if err := r.play(ctx); err != nil {
			return err
		}
		if err := r.pause(ctx, "end", r.End, i); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for a call that is made between segments and takes in answers meanwhile. The day's clock stands still.
func (r *run) pause(ctx context.Context, what string, call func(context.Context, int) error, segment int) error {
	if call == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	returned := make(chan error, 1)
	go func() { returned <- call(ctx, segment) }()
	for {
		select {
		case o := <-r.outcomes:
			r.settle(o)
		case err := <-returned:
			if err == nil || ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%s segment %d: %w", what, segment, err)
		}
	}
}

// begin starts the clock of a segment and places what had to wait for it.
func (r *run) begin(i int) {
	r.clock.begin(i, r.now())
	glance := *r.clock
	r.gauges.clock.Store(&glance)
	for r.later.len() > 0 && r.later.top().day < r.clock.segment().Until {
		r.place(r.later.pop())
	}
}

// place puts a job where it waits for its time.
func (r *run) place(j *job) {
	due, ok := r.clock.place(&j.moment)
	if j.parked = !ok; j.parked {
		r.later.push(j)
		return
	}
	j.due, j.segment = due, r.clock.current
	r.due.push(j)
}

// play sends what is due in the current segment until that is over.
func (r *run) play(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.pull()
		if r.over() {
			return nil
		}
		if wake := r.wake(); r.now() < wake {
			r.wait(ctx, wake)
			continue
		}
		r.collect()
		r.take(ctx)
	}
}

// pull plans slots until the earliest job that is known is the earliest that there is. So the stream is one slot ahead of the wall, no more.
func (r *run) pull() {
	for {
		day, ok := r.stream.frontier()
		if !ok || day >= r.clock.segment().Until {
			return
		}
		if r.due.len() > 0 && r.due.top().due <= r.clock.wall(day) {
			return
		}
		for _, p := range r.stream.advance() {
			r.place(&job{plan: p})
		}
	}
}

// over reports whether the segment has nothing left to send. Requests may still be under way; in the tail none may, since each may ask for a retry.
func (r *run) over() bool {
	switch {
	case r.due.len() > 0 || r.waiting.len() > 0 || r.held():
		return false
	case r.clock.inTail():
		return r.busy == 0
	}
	return r.now() >= r.clock.end()
}

// held reports whether a provider's own rules still hold something back that an answer will let go.
func (r *run) held() bool {
	return slices.ContainsFunc(r.stream.cast, func(c *role) bool { return c.lane.held() })
}

// ready reports whether the job that is due next could be sent now.
func (r *run) ready() bool {
	top := r.due.top()
	return len(r.idle) > 0 && top.slot.role.lane.admits(top)
}

// wake is when the scheduler has to act next if no answer comes before.
func (r *run) wake() time.Duration {
	switch {
	case r.due.len() > 0 && r.ready():
		return r.due.top().due - lead
	case r.due.len() > 0:
		return r.due.top().due
	case r.waiting.len() > 0 || r.held():
		return never
	}
	return r.clock.end()
}

// wait waits until an instant, one answer, or the end of ctx.
func (r *run) wait(ctx context.Context, until time.Duration) {
	if r.collect() {
		return // That was worth no timer.
	}
	r.timer.Reset(until - r.now())
	select {
	case o := <-r.outcomes:
		r.settle(o)
	case <-r.timer.C:
	case <-ctx.Done():
	}
}

// collect takes in the answers that are there and reports whether there were any.
func (r *run) collect() (any bool) {
	for {
		select {
		case o := <-r.outcomes:
			any = true
			r.settle(o)
		default:
			return any
		}
	}
}

// take sends the job that is due next, or lets it wait.
func (r *run) take(ctx context.Context) {
	if r.due.len() == 0 || !r.ready() && r.now() < r.due.top().due {
		return
	}
	j := r.due.pop()
	if r.defers(j) {
		return
	}
	r.introduce(j)
	lane := &j.slot.role.lane
	switch {
	case j.slot.withheld && j.provided():
		r.gauges.withheld.Add(1)
	case lane.disabled && j.provided():
		r.gauges.suppressed.Add(1)
	case !lane.admits(j):
		r.hold(j, &lane.line)
	case len(r.idle) == 0:
		if r.hold(j, &r.waiting) {
			lane.enter(j)
		}
	default:
		lane.enter(j)
		r.sendAt(ctx, j)
	}
}

// sendAt prepares a job, for which a slot is free, and sends it when it is due.
func (r *run) sendAt(ctx context.Context, j *job) {
	s := r.slot()
	s.prepare(j)
	r.Sleep(ctx, r.Start.Add(j.due))
	if ctx.Err() != nil {
		r.idle = append(r.idle, s)
		return
	}
	r.send(s)
}

// slot takes a free slot, of which there must be one.
func (r *run) slot() *sender {
	last := len(r.idle) - 1
	s := r.idle[last]
	r.idle = r.idle[:last]
	return s
}

// hold lets a job wait in a queue and counts it as blocked, unless nothing may be caught up: then it reports false and skips the job.
func (r *run) hold(j *job, queue *fifo[*job]) bool {
	if r.NoCatchUp {
		r.skip(j)
		return false
	}
	j.blocked = true
	queue.push(j)
	r.gauges.blocked.Add(1)
	r.gauges.waiting.Add(1)
	return true
}

// skip leaves an attempt out, and with it those that would follow: nobody knows what they would have been.
func (r *run) skip(j *job) {
	r.gauges.skipped.Add(1)
	if lane := &j.slot.role.lane; lane.head == j {
		lane.head = nil // nobody waits for it: who would have to is skipped too
	}
}

// introduce counts the next attempt, and writes the delivery down before its first.
func (r *run) introduce(j *job) {
	again := j.try > 0
	if again {
		r.gauges.retries.Add(-1)
	}
	if j.introduced {
		j.introduced = false
		return
	}
	j.try++
	j.step++
	j.repeated, j.target, j.hops, j.spent = false, nil, 0, 0
	if again {
		return
	}
	j.number = r.deliveries
	r.deliveries++
	d := ledger.Delivery{Number: j.number, Class: j.class, Provider: j.slot.role.index, Count: uint16(len(j.slot.events))}
	if d.Count > 0 {
		d.First = j.slot.events[0].Number
	}
	if d.Class == ledger.Genuine {
		r.gauges.born.Add(int64(d.Count))
	}
	r.Books.Delivery(d)
}

// send starts a prepared attempt.
func (r *run) send(s *sender) {
	r.busy++
	r.gauges.sent.Add(1)
	r.gauges.inFlight.Store(int64(r.busy))
	r.start(s)
}

// start wakes the goroutine of a sender, which has a prepared attempt and nothing under way.
//
// Note: a goroutine for each attempt would begin with a small stack each time, and outgrow it in every request.
func (r *run) start(s *sender) {
	if s.wake == nil {
		s.wake = make(chan struct{}, 1)
		r.goroutines.Go(func() {
			for range s.wake {
				s.send(r.outcomes)
			}
		})
	}
	s.wake <- struct{}{}
}

// stop waits for what is under way, at most for the grace if the run was interrupted, and leaves nothing behind.
func (r *run) stop() {
	r.stopping = true
	r.gauges.ended.Store(int64(r.now()))
	r.timer.Reset(grace)
	for r.busy > 0 {
		select {
		case o := <-r.outcomes:
			r.settle(o)
		case <-r.timer.C:
			r.cutOff()
		}
	}
	r.cutOff()
	r.timer.Stop()
	for _, s := range r.idle {
		s.disarm()
		if s.wake != nil {
			close(s.wake)
		}
	}
	r.goroutines.Wait()
	if t, ok := r.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
