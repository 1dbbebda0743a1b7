package redisstreams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"floodproof/reference/queue"
)

const (
	// lookAgain is the longest pause between two looks at an empty lane. What is enqueued rings at once; what another handle gave back with a delay is only
	// seen when somebody looks.
	lookAgain = 100 * time.Millisecond
	// maxClaimBytes bounds the stored bodies that one Receive takes on; it gets at least one job. maxClaimJobs bounds how long its script runs.
	maxClaimBytes = 4 << 20
	maxClaimJobs  = 512
)

// lane is what the receivers of one lane in this handle share.
type lane struct {
	line string // the key of its stream
	// turn is held by the one Receive that waits for something to come; the others stand in line for it.
	turn chan struct{}
	// bell tells it that something came.
	bell chan struct{}
	// listening says that somebody listens to the server for that.
	listening atomic.Bool
}

// lane finds a lane by its name, and makes it the first time.
func (q *Queue) lane(name string) *lane {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[name]
	if l == nil {
		l = &lane{line: q.prefix + "line:" + name, turn: make(chan struct{}, 1), bell: make(chan struct{}, 1)}
		q.lanes[name] = l
	}
	return l
}

// Receive implements queue.Queue. It may return fewer jobs than are due, to bound the memory that their payloads take. When the server
// cannot be reached it returns the error at once; the next call tries again.
//
// A call that finds nothing stands in line, behind the one Receive of this handle and lane that waits.
func (q *Queue) Receive(ctx context.Context, name string, max int) ([]queue.Lease, error) {
	if max < 1 {
		return nil, fmt.Errorf("receive up to %d jobs: use at least 1", max)
	}
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.calls.Done()
	c, err := q.claim(ctx, name, max)
	if err == nil && len(c.leases) == 0 {
		c, err = q.await(ctx, name, max)
	}
	switch {
	case err == nil:
		return c.leases, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, queue.ErrClosed):
		return nil, err
	}
	return nil, fmt.Errorf("receive: %w", err)
}

// await claims whenever something came or a delay is over, until it gets something.
func (q *Queue) await(ctx context.Context, name string, max int) (claimed, error) {
	l := q.lane(name)
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return claimed{}, ctx.Err()
	case <-q.closing:
		return claimed{}, queue.ErrClosed
	}
	defer func() { <-l.turn }()
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	for {
		c, err := q.claim(ctx, name, max)
		if err != nil || len(c.leases) > 0 {
			return c, err
		}
		q.listen(l, c.last)
		timer.Reset(c.wait)
		select {
		case <-timer.C:
		case <-l.bell:
		case <-ctx.Done():
			return claimed{}, ctx.Err()
		case <-q.closing:
			return claimed{}, queue.ErrClosed
		}
	}
}

// listen has the bell rung when the line has an entry behind last. Nobody takes the entry by that: the stream itself is the bell, so that a job cannot be
// there without it, and one that came between the look and the listening rings at once.
//
// There is one listener for a lane at most. One that still listens for an earlier entry rings too early, which costs a look.
func (q *Queue) listen(l *lane, last string) {
	if !l.listening.CompareAndSwap(false, true) {
		return
	}
	q.calls.Go(func() {
		err := q.bells.XRead(context.Background(), &redis.XReadArgs{Streams: []string{l.line, last}, Count: 1, Block: listenFor}).Err()
		l.listening.Store(false)
		if err != nil {
			return // nothing came, or the connection broke: the next look is soon enough
		}
		select {
		case l.bell <- struct{}{}:
		default:
		}
	})
}

// listenFor is how long a listener blocks on the server.
const listenFor = 5 * time.Second

// claimed is the answer of a claim.
type claimed struct {
	leases []queue.Lease
	// Without leases: how long to wait until the next look, and the last entry of the line.
	wait time.Duration
	last string
}

// claim leases what is due. If the caller leaves before the answer comes, the jobs are given back: nobody would work on them until their leases lapse.
func (q *Queue) claim(ctx context.Context, name string, max int) (claimed, error) {
	if err := ctx.Err(); err != nil {
		return claimed{}, err
	}
	type answer struct {
		claimed
		err error
	}
	answers := make(chan answer)
	q.calls.Go(func() {
		c, err := q.sendClaim(name, max)
		select {
		case answers <- answer{c, err}:
		case <-ctx.Done():
			q.giveBack(c.leases)
		}
	})
	select {
	case a := <-answers:
		return a.claimed, a.err
	case <-ctx.Done():
		return claimed{}, ctx.Err()
	}
}

func (q *Queue) sendClaim(name string, max int) (claimed, error) {
	sent := time.Now()
	answer, err := q.run(context.Background(), q.scripts.claim, name, min(max, maxClaimJobs), q.opts.Lease.Milliseconds(), maxClaimBytes)
	if err != nil {
		return claimed{}, err
	}
	parts, err := array(answer, 5)
	if err != nil {
		return claimed{}, err
	}
	at, err := instant(sent, time.Now(), parts[0], parts[1])
	if err != nil {
		return claimed{}, err
	}
	given, err := array(parts[2], 0)
	if err != nil {
		return claimed{}, err
	}
	c := claimed{wait: lookAgain}
	if ms, ok := parts[3].(int64); ok && ms >= 0 {
		c.wait = min(lookAgain, time.Duration(ms)*time.Millisecond+time.Millisecond)
	}
	c.last, _ = parts[4].(string)
	c.last = cmp.Or(c.last, "0-0")
	for _, g := range given {
		lease, err := unpack(g)
		if errors.Is(err, errDamaged) {
			// Nobody can ever work on it, and it must not stand in the way of the others.
			err = q.bury(lease, err)
			if err == nil {
				c.wait = 0
				continue
			}
		}
		if err != nil {
			return claimed{}, err // the leases lapse by themselves
		}
		lease.Deadline = at.Add(q.opts.Lease)
		c.leases = append(c.leases, lease)
	}
	return c, nil
}

// unpack reads what the script says of one lease. Of one whose event is damaged it returns what names it.
func unpack(given any) (queue.Lease, error) {
	g, err := array(given, 4)
	if err != nil {
		return queue.Lease{}, err
	}
	name, _ := g[0].(string)
	record, _ := g[3].(string)
	token, _ := g[1].(int64)
	attempt, _ := g[2].(int64)
	lease := queue.Lease{ID: handle(name), Token: token, Attempt: int(attempt)}
	if token < 1 || attempt < 1 {
		return lease, unexpected(given)
	}
	lease.Job, err = decode(name, record)
	return lease, err
}

// handle is a number for a job. The server knows it by its name; this one is for those who want a number that is the same at each lease.
func handle(ref string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(ref)) // never fails
	return int64(h.Sum64() >> 1)
}

// bury makes a dead letter of a job whose event is damaged.
func (q *Queue) bury(lease queue.Lease, why error) error {
	_, err := q.changes(change{verb: "dead", text: clip(why.Error())}.args(ref(lease.Provider, lease.EventID), lease.Token))
	return err
}

// giveBack ends leases as if they had not been given. Where that fails they lapse by themselves.
func (q *Queue) giveBack(leases []queue.Lease) {
	if len(leases) == 0 {
		return
	}
	changes := make([][]any, len(leases))
	for i, lease := range leases {
		changes[i] = change{verb: "back"}.args(ref(lease.Provider, lease.EventID), lease.Token)
	}
	_, _ = q.changes(changes...)
}
