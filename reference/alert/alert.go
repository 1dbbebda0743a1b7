package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Letter is what an alert says of a dead letter.
type Letter struct {
	Provider, EventID, Type string
	// Lane is "" for the default one.
	Lane string
	// Reason is why; it is told without what stands in quotes.
	Reason string
	// Attempts is how many leases it had, 0 for one that was dead on arrival.
	Attempts int
	At       time.Time
}

// Notice is one alert.
type Notice struct {
	// Letter is the one that it is about, or the newest of More.
	Letter
	// More is 0 for an alert of one letter. Otherwise it is a sum: so many letters of the same lane and reason came since Since, of which nobody was told.
	More  int
	Since time.Time
}

// Sender takes alerts somewhere. It is called by one goroutine at a time, and may take as long as the context allows.
type Sender interface {
	Send(ctx context.Context, n Notice) error
}

// Flusher is a Sender that has not sent everything when Send returns (optional). Flush is called once, at the end.
type Flusher interface {
	Flush(ctx context.Context) error
}

// The defaults and bounds of a Config.
const (
	DefaultEvery = time.Minute
	DefaultBurst = 5
	DefaultGrace = 5 * time.Second
	// queued is how many letters, and for each Sender how many alerts, may wait.
	queued = 256
	// sendTimeout bounds one alert with all its attempts.
	sendTimeout = 45 * time.Second
)

// Config is what an Alerter needs. Every field may be left empty.
type Config struct {
	// Senders are told of everything, each by its name in logs and errors.
	Senders map[string]Sender
	// Every is the time between two alerts of one lane and reason, after the first Burst of them. 0: DefaultEvery and DefaultBurst.
	Every time.Duration
	Burst int
	// Grace is how long, at the stop, what waits may still be sent. 0: DefaultGrace.
	Grace time.Duration
	// Logger hears of alerts that could not be sent. Nil: nothing is logged.
	Logger *slog.Logger
}

// Counts are what became of the letters and alerts so far.
type Counts struct {
	// Letters came; Overflowed are those among them for which the queue had no room: nobody is told of them.
	Letters, Overflowed int64
	// Alerts are those that were to be sent, sums too, by any one Sender; Sent and Failed count each Sender's.
	Alerts, Sent, Failed int64
}

// Alerter tells its Senders of dead letters. It is safe for concurrent use.
type Alerter struct {
	cfg     Config
	log     *slog.Logger
	letters chan Letter
	outlets []outlet

	came, overflowed, alerts, sent, failed atomic.Int64
}

// outlet is one Sender with its queue.
type outlet struct {
	name   string
	sender Sender
	queue  chan Notice
}

// New checks the configuration. Nothing is sent before Run.
func New(cfg Config) (*Alerter, error) {
	if cfg.Every < 0 || cfg.Burst < 0 || cfg.Grace < 0 {
		return nil, errors.New("configure alerts: no field may be below 0")
	}
	cfg.Every, cfg.Grace = orDefault(cfg.Every, DefaultEvery), orDefault(cfg.Grace, DefaultGrace)
	cfg.Burst = orDefault(cfg.Burst, DefaultBurst)
	a := &Alerter{cfg: cfg, log: cfg.Logger, letters: make(chan Letter, queued)}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	for name, s := range cfg.Senders {
		if s == nil {
			return nil, fmt.Errorf("configure alerts: sender %q is nil", name)
		}
		a.outlets = append(a.outlets, outlet{name, s, make(chan Notice, queued)})
	}
	return a, nil
}

func orDefault[T int | time.Duration](value, fallback T) T {
	if value == 0 {
		return fallback
	}
	return value
}

// Dead tells of a letter. It never waits.
func (a *Alerter) Dead(l Letter) {
	a.came.Add(1)
	if len(a.outlets) == 0 {
		return
	}
	select {
	case a.letters <- l:
	default:
		a.overflowed.Add(1)
	}
}

// Counts returns the counts. It may be called at any time.
func (a *Alerter) Counts() Counts {
	return Counts{Letters: a.came.Load(), Overflowed: a.overflowed.Load(), Alerts: a.alerts.Load(), Sent: a.sent.Load(), Failed: a.failed.Load()}
}

// Run sends alerts until ctx ends; then it sends what waits, sums too, within the grace, and returns nil. It is called once, and what is told after its end is lost: it should end after
// those who tell.
func (a *Alerter) Run(ctx context.Context) error {
	sending, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	var g errgroup.Group
	g.Go(func() error {
		a.decide(ctx)
		for _, o := range a.outlets {
			close(o.queue)
		}
		return nil
	})
	for _, o := range a.outlets {
		g.Go(func() error { a.deliver(sending, o); return nil })
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_ = g.Wait() // none of them returns an error
	}()
	<-ctx.Done()
	grace := time.NewTimer(a.cfg.Grace)
	defer grace.Stop()
	select {
	case <-finished:
	case <-grace.C:
		abandon() // no Sender outlives its context
		<-finished
	}
	return nil
}

// decide takes letters and says which are told.
func (a *Alerter) decide(ctx context.Context) {
	l := newLimiter(a.cfg.Every, a.cfg.Burst)
	timer := time.NewTimer(a.cfg.Every)
	defer timer.Stop()
	for {
		select {
		case letter := <-a.letters:
			a.take(l, letter)
		case <-timer.C:
			a.tell(l.due(time.Now())...)
		case <-ctx.Done():
			for len(a.letters) > 0 {
				a.take(l, <-a.letters)
			}
			a.tell(l.rest()...)
			return
		}
		timer.Reset(l.next(time.Now()))
	}
}

// take tells of a letter, or leaves it for a sum.
func (a *Alerter) take(l *limiter, letter Letter) {
	letter.Reason = Redact(letter.Reason)
	if l.admit(letter, time.Now()) {
		a.tell(Notice{Letter: letter})
	}
}

// tell hands alerts to all Senders.
func (a *Alerter) tell(notices ...Notice) {
	for _, n := range notices {
		a.alerts.Add(1)
		for _, o := range a.outlets {
			select {
			case o.queue <- n:
			default:
				a.failed.Add(1)
				a.log.Warn("alert was left out: too many wait", "to", o.name, "provider", n.Provider, "event", n.EventID)
			}
		}
	}
}

// deliver sends what comes to one Sender.
func (a *Alerter) deliver(ctx context.Context, o outlet) {
	for n := range o.queue {
		if err := send(ctx, o.sender, n); err != nil {
			a.failed.Add(1)
			a.log.Warn("alert could not be sent", "to", o.name, "provider", n.Provider, "event", n.EventID, "err", err)
			continue
		}
		a.sent.Add(1)
	}
	if f, ok := o.sender.(Flusher); ok {
		if err := f.Flush(ctx); err != nil {
			a.log.Warn("alerts may be lost", "to", o.name, "err", err)
		}
	}
}

func send(ctx context.Context, s Sender, n Notice) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return s.Send(ctx, n)
}
