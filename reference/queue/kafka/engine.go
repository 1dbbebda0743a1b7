package kafka

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"floodproof/reference/queue/memory/state"
)

// engine does commands by writing them to the log, and, unless nothing but the writing matters, reading there what became of them.
type engine struct {
	topic    string
	options  []kgo.Opt
	producer *kgo.Client
	writer   uint64
	now      func() time.Time
	fold     *fold

	intake chan *call
	ended  chan struct{} // closed when the writer is gone

	reading sync.Once
	stop    context.CancelFunc
	tailing sync.WaitGroup

	mu      sync.Mutex
	number  int64
	writing int64             // the frame that is being written, 0 if none is
	pending map[int64][]*call // by frame: those that wait for the log
	claims  map[string]chan struct{}
	lost    error // what the log lost, until somebody is told
	broken  error // the log cannot be read on
}

// call is one command under way. result and err are set before done is closed.
type call struct {
	command   *state.Command
	size      int
	done      chan struct{}
	result    state.Result
	err       error
	answered  bool
	abandoned bool
}

// size is how much of a frame a command needs, at most.
func size(c *state.Command) int {
	n := len(c.Name) + len(c.EventID) + len(c.Filter.Provider) + len(c.Filter.State) + len(c.Filter.Type) + 128
	for i := range c.Jobs {
		n += state.Size(&c.Jobs[i])
	}
	return n
}

// Do implements front.Engine.
func (e *engine) Do(ctx context.Context, c *state.Command) (state.Result, error) {
	if blind(c.Op) {
		return e.write(ctx, c)
	}
	if err := e.read(); err != nil {
		return state.Result{}, err
	}
	switch c.Op {
	case state.Lease:
		return e.lease(ctx, c)
	case state.Event:
		return e.lookUp(ctx, c)
	case state.Replay:
		return e.replay(ctx, c)
	default:
		return e.write(ctx, c)
	}
}

// blind reports that nothing matters of an operation but that it is in the log: whoever asks for it need not read that.
func blind(op state.Op) bool { return op == state.Enqueue || op == state.Retain }

// lease waits until a claim gets something.
func (e *engine) lease(ctx context.Context, c *state.Command) (state.Result, error) {
	turn := e.turn(c.Name)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return state.Result{}, ctx.Err()
	}
	for {
		if err := e.awaitDue(ctx, c.Name); err != nil {
			return state.Result{}, err
		}
		if r, err := e.write(ctx, c); err != nil || len(r.Leases) > 0 {
			return r, err
		}
	}
}

// turn lets one receiver of a lane ask at a time: all of this handle would see the same job and write a claim for it, and all but one in vain.
func (e *engine) turn(lane string) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.claims[lane]
	if t == nil {
		t = make(chan struct{}, 1)
		e.claims[lane] = t
	}
	return t
}

func (e *engine) awaitDue(ctx context.Context, lane string) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		log, err := e.view()
		if err != nil {
			return err
		}
		now, woken, wait := log.due(lane)
		if err := ctx.Err(); now || err != nil {
			return err
		}
		if wait < 0 || wait > lookAgain {
			wait = lookAgain // at e.view
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-woken:
		case <-timer.C:
		}
	}
}

func (e *engine) trouble() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.broken
}

// view is what the log says so far. That the log lost something is told once, instead.
func (e *engine) view() (*fold, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.lost; err != nil && e.broken == nil {
		e.lost = nil
		return nil, err
	}
	return e.fold, e.broken
}

// write gives a command to the writer and waits for its answer.
func (e *engine) write(ctx context.Context, c *state.Command) (state.Result, error) {
	k := &call{command: c, size: size(c), done: make(chan struct{})}
	select {
	case e.intake <- k:
	case <-ctx.Done():
		return state.Result{}, ctx.Err()
	}
	select {
	case <-k.done:
		return k.result, k.err
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if k.answered {
		return k.result, k.err
	}
	k.abandoned = true
	return state.Result{}, ctx.Err()
}

// answer ends a call. Leases for somebody who has left go back. The lock is held.
func (e *engine) answer(k *call, r state.Result, err error) (orphans []state.Command) {
	if k.abandoned || k.answered {
		for _, l := range r.Leases {
			orphans = append(orphans, state.Command{Op: state.GiveBack, ID: l.ID, Token: l.Token, EventID: l.EventID})
		}
		return orphans
	}
	k.result, k.err, k.answered = r, err, true
	close(k.done)
	return nil
}

// run writes frames, each with all that came while the one before was written.
func (e *engine) run() {
	defer close(e.ended)
	var next *call
	for {
		k := next
		if k == nil {
			var ok bool
			if k, ok = <-e.intake; !ok {
				return
			}
		}
		var group []*call
		group, next = e.collect(k)
		e.produce(group)
	}
}

// collect puts together what waits, up to a frame, and returns besides what did not fit. Those whom the last frame has answered need a moment to come again, and without them the next
// would be small and cost as much.
func (e *engine) collect(first *call) (group []*call, next *call) {
	group, total := []*call{first}, first.size
	for patience := 4; ; {
		select {
		case more, ok := <-e.intake:
			if !ok {
				return group, nil
			}
			if total += more.size; total > maxFrame {
				return group, more
			}
			group = append(group, more)
		default:
			if patience--; patience < 0 {
				return group, nil
			}
			runtime.Gosched()
		}
	}
}

// produce writes one frame. It is stored or not when it returns; after an error nobody knows.
func (e *engine) produce(group []*call) {
	e.mu.Lock()
	e.number++
	number := e.number
	e.writing = number
	for _, k := range group {
		if !blind(k.command.Op) {
			e.pending[number] = group
			break
		}
	}
	e.mu.Unlock()
	f := frame{version: frameVersion, writer: e.writer, number: number, clock: e.now().UnixMicro()}
	for _, k := range group {
		f.version = max(f.version, versionOf(k.command.Op))
	}
	value := f.appendHead(nil)
	for _, k := range group {
		value = state.AppendCommand(value, k.command)
	}
	err := e.producer.ProduceSync(context.Background(), &kgo.Record{Topic: e.topic, Partition: 0, Value: value}).FirstErr() // deliverWithin bounds it
	if err != nil {
		err = fmt.Errorf("write to the log: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writing = 0
	for _, k := range group {
		switch {
		case err != nil || blind(k.command.Op):
			e.answer(k, state.Result{}, err)
		case e.broken != nil:
			e.answer(k, state.Result{}, e.broken)
		}
	}
}

// Close implements front.Engine.
func (e *engine) Close() {
	if e.stop != nil {
		e.stop()
		e.tailing.Wait()
	}
	close(e.intake)
	<-e.ended
	e.producer.Close()
}
