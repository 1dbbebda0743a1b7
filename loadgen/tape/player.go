package tape

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// defaultInFlight is how many requests are under way at once at most (Player.MaxInFlight 0).
	defaultInFlight = 256
	// lateness is how much after its due time a request may be begun without being late.
	lateness = 10 * time.Millisecond
	// playGrace is how long an interrupted replay waits for answers.
	playGrace = 500 * time.Millisecond
)

// Source is a recording as the player sees it: requests in the order of their offsets. [Recording] is one.
type Source interface {
	Len() int
	Offset(i int) time.Duration
	Load(i int) (Request, error)
}

// Transmitter sends one request and waits for its answer. It is called by many goroutines at once. [Sender] is one.
type Transmitter interface {
	Transmit(ctx context.Context, r Request) Answer
}

// Answer is how a request ended.
type Answer struct {
	// At is when the answer's head was complete, or when the request was given up.
	At time.Time
	// Status is the HTTP status, 0 if there was no answer; OK, that the provider takes it for success.
	Status int
	OK     bool
	// TimedOut: there was no answer within the provider's time-out.
	TimedOut bool
	// Unsigned: it was sent without a signature.
	Unsigned bool
	// Err is why there was no answer.
	Err error
}

// Player plays a recording back in its order and with its gaps. It never waits for an answer before it sends the next request; what is due while as many as
// allowed are under way waits for one of them, and is measured from its due time all the same.
type Player struct {
	// Scale divides the gaps: 20 plays an hour in three minutes. 0 means 1. It is ignored if Rate is set.
	Scale float64
	// Rate sends so many requests a second at equal gaps instead. 0 keeps the recording's gaps.
	Rate float64
	// For ends the replay after this time; what is due later is not sent. 0 plays everything.
	For time.Duration
	// MaxInFlight bounds the requests under way. 0 means 256.
	MaxInFlight int
	// Progress is told the numbers so far after every answer, from the goroutine of Run, and must not keep them. Nil: nobody is told.
	Progress func(Summary)
}

// play is one run of a player. All of it belongs to the goroutine of Run; requests run in their own and come back through done.
type play struct {
	*Player
	source  Source
	to      Transmitter
	start   time.Time
	count   int
	next    int
	head    *Request // the next request, loaded ahead of its time
	free    int
	waiting []int
	done    chan ended
	cancel  context.CancelFunc
	base    context.Context
	sum     Summary
}

// ended is a request that came to its end.
type ended struct {
	due, began time.Duration
	blocked    bool
	// skipped: the recording does not have its body.
	skipped bool
	answer  Answer
	// err is why the recording could not be read.
	err error
}

// Run plays a source. It returns what happened also with an error: that of ctx, or of a recording that cannot be read any more.
func (p *Player) Run(ctx context.Context, source Source, to Transmitter) (*Summary, error) {
	slots := p.MaxInFlight
	if slots == 0 {
		slots = defaultInFlight
	}
	if slots < 0 || p.Scale < 0 || p.Rate < 0 || p.For < 0 {
		return nil, errors.New("replay: scale, rate, time and requests under way cannot be negative")
	}
	r := &play{Player: p, source: source, to: to, free: slots, done: make(chan ended, slots), start: time.Now(), sum: newSummary(source.Len())}
	r.count = r.inTime()
	r.sum.LeftOut = source.Len() - r.count
	r.base, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer r.cancel()
	err := r.play(ctx)
	r.stop()
	r.sum.Elapsed = time.Since(r.start)
	r.sum.NotSent = r.count - r.sum.Sent - r.sum.Skipped
	return &r.sum, err
}

// due is when request i has to be sent, from the start of the replay.
func (r *play) due(i int) time.Duration {
	if r.Rate > 0 {
		return time.Duration(float64(i) / r.Rate * float64(time.Second))
	}
	gap := r.source.Offset(i) - r.source.Offset(0)
	if r.Scale > 0 {
		return time.Duration(float64(gap) / r.Scale)
	}
	return gap
}

// inTime is how many requests are due before the replay ends.
func (r *play) inTime() int {
	n := r.source.Len()
	for r.For > 0 && n > 0 && r.due(n-1) >= r.For {
		n--
	}
	return n
}

func (r *play) now() time.Duration { return time.Since(r.start) }

// play sends everything and waits for all answers.
func (r *play) play(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for r.next < r.count || len(r.waiting) > 0 || r.busy() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.next < r.count {
			if r.now() >= r.due(r.next) {
				r.take()
				continue
			}
			r.loadAhead()
			timer.Reset(r.due(r.next) - r.now())
		}
		select {
		case e := <-r.done:
			if err := r.settle(e); err != nil {
				return err
			}
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return nil
}

func (r *play) busy() int { return cap(r.done) - r.free }

// loadAhead reads the next request while there is time. An error comes again when it is due.
func (r *play) loadAhead() {
	if r.head != nil {
		return
	}
	if req, err := r.source.Load(r.next); err == nil {
		r.head = &req
	}
}

// take sends the next request, or lets it wait for a slot.
func (r *play) take() {
	i, head := r.next, r.head
	r.next, r.head = i+1, nil
	if r.free == 0 {
		r.waiting = append(r.waiting, i)
		r.sum.Blocked++
		r.tell()
		return
	}
	r.send(i, head, false)
}

// send starts request i.
func (r *play) send(i int, loaded *Request, blocked bool) {
	r.free--
	due := r.due(i)
	go func() {
		e := ended{due: due, blocked: blocked}
		defer func() { r.done <- e }()
		if loaded == nil {
			req, err := r.source.Load(i)
			if e.err = err; err != nil {
				return
			}
			loaded = &req
		}
		if e.skipped = loaded.Body.LeftOut; e.skipped {
			return
		}
		e.began = r.now()
		e.answer = r.to.Transmit(r.base, *loaded)
	}()
}

// settle counts what a request came to and gives its slot to the next that waits.
func (r *play) settle(e ended) error {
	r.free++
	if e.err != nil {
		return fmt.Errorf("replay: %w", e.err)
	}
	r.sum.add(e, r.start)
	if len(r.waiting) > 0 {
		i := r.waiting[0]
		r.waiting = r.waiting[1:]
		r.send(i, nil, true)
	}
	r.tell()
	return nil
}

// tell reports progress.
func (r *play) tell() {
	if r.Progress != nil {
		r.Progress(r.sum)
	}
}

// stop waits for what is under way, at most for the grace, and sends nothing any more.
func (r *play) stop() {
	r.waiting = nil
	if r.busy() == 0 {
		return
	}
	timer := time.AfterFunc(playGrace, r.cancel)
	defer timer.Stop()
	for r.busy() > 0 {
		_ = r.settle(<-r.done) // the first error was returned
	}
}
