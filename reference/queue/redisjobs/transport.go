package redisjobs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"floodproof/reference/queue/bundle"
	"floodproof/reference/queue/inbox"
)

const (
	// taskType is the type of our tasks.
	taskType = "floodproof:messages"
	// forever is as many tries as asynq can count.
	forever = math.MaxInt32
	// maxTask is up to where messages share a task, maxMessage the largest message, in bytes. Redis would take half a gigabyte.
	maxTask, maxMessage = 1 << 20, 48 << 20
	// parallel is how many tasks of one Publish are under way at once.
	parallel = 4
	// longestPause ends the wait for asynq to delete what was acknowledged: pauses that double from a millisecond, half a second in all.
	longestPause = 256 * time.Millisecond
)

// Transport carries messages as tasks of one queue of asynq. It implements inbox.Transport, inbox.Describer and inbox.Waiter.
type Transport struct {
	opts    Options
	redis   *redis.Client
	client  *asynq.Client
	server  *redis.Options
	promise inbox.Promise
	shelf   bundle.Shelf[*delivery]

	arrived chan *delivery
	closing chan struct{} // closed when Close begins
	ended   chan struct{} // closed when nothing is left

	mu     sync.Mutex
	worker *worker // nil until the first Fetch
	closed bool
	err    error // of closing, valid after ended
}

// delivery is a task in the hands of its handler, until done is closed.
type delivery struct {
	id, key string
	payload []byte
	done    chan struct{}
}

// key is where asynq keeps a task; it is part of its documented layout of Redis (https://github.com/hibiken/asynq/wiki, read November 2026, and base.TaskKey in v0.26.0).
func (t *Transport) key(part string) string { return "asynq:{" + t.opts.Namespace + "}:" + part }

// Publish implements inbox.Transport. A task gets an id of its own at each try, so that none can be taken for another.
func (t *Transport) Publish(ctx context.Context, messages [][]byte) error {
	var all errgroup.Group
	all.SetLimit(parallel)
	for _, b := range bundle.Pack(messages, maxTask) {
		all.Go(func() error {
			_, err := t.client.EnqueueContext(ctx, asynq.NewTask(taskType, b), asynq.Queue(t.opts.Namespace), asynq.MaxRetry(forever))
			return err
		})
	}
	return all.Wait()
}

// Fetch implements inbox.Transport.
func (t *Transport) Fetch(ctx context.Context, limit int) ([]inbox.Message, error) {
	if err := t.work(); err != nil {
		return nil, err
	}
	for {
		if got := t.shelf.Take(limit); len(got) > 0 {
			return got, nil
		}
		select {
		case d := <-t.arrived:
			t.shelf.Put(d.payload, d)
			t.more()
		case <-t.closing:
			return nil, errClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var errClosed = errors.New("the transport is closed")

// more takes what other handlers hold by now.
func (t *Transport) more() {
	for range concurrency {
		select {
		case d := <-t.arrived:
			t.shelf.Put(d.payload, d)
		default:
			return
		}
	}
}

// work starts to take tasks, once.
func (t *Transport) work() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed
	}
	if t.worker != nil {
		return nil
	}
	w, err := t.start()
	if err != nil {
		return fmt.Errorf("start to take tasks: %w", err)
	}
	t.worker = w
	return nil
}

// Ack implements inbox.Transport. The handlers return, asynq deletes their tasks, and this waits until they are gone, as asynq tells nobody. What is still there then, because asynq could not, is deleted here.
func (t *Transport) Ack(ctx context.Context, messages []inbox.Message) error {
	finished := t.shelf.Done(messages)
	if len(finished) == 0 {
		return nil
	}
	for _, d := range finished {
		close(d.done)
	}
	gone, err := t.gone(ctx, finished)
	if err == nil && !gone {
		err = t.remove(ctx, finished)
	}
	if err != nil {
		return fmt.Errorf("delete %d tasks: %w", len(finished), err)
	}
	return nil
}

// gone waits until asynq has deleted tasks, for a while.
func (t *Transport) gone(ctx context.Context, tasks []*delivery) (bool, error) {
	var keys []string
	for _, d := range tasks {
		keys = append(keys, d.key)
	}
	for pause := time.Millisecond; ; pause *= 2 {
		left, err := t.redis.Exists(ctx, keys...).Result()
		if err != nil || left == 0 || pause > longestPause {
			return left == 0, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
	}
}

// done deletes tasks as asynq does, in whosever hands they are. KEYS: active, pending, lease, retry. ARGV: the prefix of tasks, and their ids.
const done = `
for i = 2, #ARGV do
	redis.call("LREM", KEYS[1], 0, ARGV[i])
	redis.call("LREM", KEYS[2], 0, ARGV[i])
	redis.call("ZREM", KEYS[3], ARGV[i])
	redis.call("ZREM", KEYS[4], ARGV[i])
	redis.call("DEL", ARGV[1] .. ARGV[i])
end`

// remove deletes tasks that the store has.
func (t *Transport) remove(ctx context.Context, tasks []*delivery) error {
	args := []any{t.key("t:")}
	for _, d := range tasks {
		args = append(args, d.id)
	}
	keys := []string{t.key("active"), t.key("pending"), t.key("lease"), t.key("retry")}
	if err := redis.NewScript(done).Run(ctx, t.redis, keys, args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	return nil
}

// Promise implements inbox.Describer, by the settings that were in force when the transport was opened.
func (t *Transport) Promise(context.Context) (inbox.Promise, error) { return t.promise, nil }

// Waiting implements inbox.Waiter: tasks, of which each may hold several messages.
func (t *Transport) Waiting(ctx context.Context) (int64, error) {
	pipe := t.redis.TxPipeline()
	lists := []*redis.IntCmd{pipe.LLen(ctx, t.key("pending")), pipe.LLen(ctx, t.key("active"))}
	for _, set := range []string{"retry", "scheduled", "archived"} {
		lists = append(lists, pipe.ZCard(ctx, t.key(set)))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	var sum int64
	for _, n := range lists {
		sum += n.Val()
	}
	return sum, nil
}

// Close implements inbox.Transport. Tasks that are in hand go back to the front of the queue.
func (t *Transport) Close(ctx context.Context) error {
	t.mu.Lock()
	first := !t.closed
	t.closed = true
	t.mu.Unlock()
	if first {
		go t.shutDown()
	}
	select {
	case <-t.ended:
		if first {
			return t.err
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the transport: %w", ctx.Err())
	}
}

func (t *Transport) shutDown() {
	defer close(t.ended)
	if t.worker != nil {
		t.worker.stop() // while the handlers still hold their tasks: so they go back at once, without a failure
	}
	close(t.closing)
	t.err = t.redis.Close()
}

var (
	_ inbox.Transport = (*Transport)(nil)
	_ inbox.Describer = (*Transport)(nil)
	_ inbox.Waiter    = (*Transport)(nil)
)
