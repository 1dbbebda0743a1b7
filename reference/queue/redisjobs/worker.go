package redisjobs

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	// concurrency is how many tasks are in hand at once.
	concurrency = 32
	// pollEvery is how often asynq looks for tasks when there are none, on average.
	pollEvery = 25 * time.Millisecond
	// untaken is how long a handler offers its task before it gives it back: somebody else may be fetching.
	untaken = 10 * time.Second
	// abortAfter is how long asynq waits for handlers when it ends. They hold what is not acknowledged, which goes back.
	abortAfter = time.Millisecond
	// sweepEvery is how often leases are looked at, silent how long one was not prolonged whose holder is dead. asynq prolongs each every 5 seconds, to leaseFor from then.
	sweepEvery, silent, leaseFor = time.Second, 12 * time.Second, 30 * time.Second
	// calm is the least time that a command takes which fails.
	calm = 50 * time.Millisecond
)

// worker takes tasks.
type worker struct {
	server *asynq.Server
	redis  *redis.Client
	quit   context.CancelFunc
	all    sync.WaitGroup
}

// start runs asynq's server with a connection of its own.
func (t *Transport) start() (*worker, error) {
	options := *t.server
	w := &worker{redis: redis.NewClient(&options)}
	w.redis.AddHook(hook{})
	w.server = asynq.NewServerFromRedisClient(w.redis, asynq.Config{
		Concurrency: concurrency, Queues: map[string]int{t.opts.Namespace: 1}, TaskCheckInterval: pollEvery,
		IsFailure:                func(error) bool { return false }, // what is not counted is never too often
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 0 },
		DelayedTaskCheckInterval: time.Second, JanitorInterval: time.Hour,
		ShutdownTimeout: abortAfter, Logger: silence{}, LogLevel: asynq.FatalLevel,
	})
	if err := w.server.Start(asynq.HandlerFunc(t.handle)); err != nil {
		return nil, errors.Join(err, w.redis.Close())
	}
	ctx, quit := context.WithCancel(context.Background())
	w.quit = quit
	w.all.Go(func() { t.sweepAll(ctx) })
	return w, nil
}

func (w *worker) stop() {
	w.quit()
	w.all.Wait()
	w.server.Shutdown()
	_ = w.redis.Close() // nothing is under way
}

var errUntaken = errors.New("nobody fetched it")

// handle holds a task until it is acknowledged. Whatever it returns but nil brings the task back.
func (t *Transport) handle(ctx context.Context, task *asynq.Task) error {
	id, _ := asynq.GetTaskID(ctx) // asynq puts it there
	d := &delivery{id: id, key: t.key("t:" + id), payload: task.Payload(), done: make(chan struct{})}
	patience := time.NewTimer(untaken)
	defer patience.Stop()
	select {
	case t.arrived <- d:
	case <-patience.C:
		return errUntaken
	case <-t.closing:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-d.done:
		return nil
	case <-t.closing:
		return errClosed
	case <-ctx.Done(): // the lease is lost, or the task has been in hand for half an hour
		return ctx.Err()
	}
}

// sweep takes the tasks from holders that are dead and puts them to the front of the queue, as asynq's own Requeue does. A holder that lives all the same finds its task in other hands,
// or done, and its acknowledgement either fails or counts for both: each acknowledges only what the store has. A task in hand without a lease, which asynq would never
// look at again (https://github.com/hibiken/asynq/issues/1144), counts as one of the dead.
//
// KEYS: lease, active, pending. ARGV: the prefix of tasks, the least that a living holder's lease has left, in seconds.
const sweep = `
local now = tonumber(redis.call("TIME")[1])
local back = 0
for _, id in ipairs(redis.call("LRANGE", KEYS[2], 0, 999)) do
	local till = redis.call("ZSCORE", KEYS[1], id)
	if not till or tonumber(till) < now + tonumber(ARGV[2]) then
		redis.call("ZREM", KEYS[1], id)
		redis.call("LREM", KEYS[2], 0, id)
		if redis.call("HEXISTS", ARGV[1] .. id, "msg") == 1 then
			redis.call("RPUSH", KEYS[3], id)
			redis.call("HSET", ARGV[1] .. id, "state", "pending")
			back = back + 1
		end
	end
end
return back`

// sweepAll sweeps until the context ends. What fails is tried again a second later.
func (t *Transport) sweepAll(ctx context.Context) {
	script := redis.NewScript(sweep)
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = script.Run(ctx, t.redis, []string{t.key("lease"), t.key("active"), t.key("pending")}, t.key("t:"), int64((leaseFor - silent).Seconds())).Err()
		}
	}
}

// hook makes a command that fails take its time: asynq's loop asks a server that is gone again at once, and would burn a processor.
type hook struct{}

// DialHook implements redis.Hook.
func (hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

// ProcessHook implements redis.Hook.
func (hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			timer := time.NewTimer(calm)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// silence is asynq's log: what it would say about single tasks is seen in their coming again.
type silence struct{}

// Debug, Info, Warn, Error and Fatal implement asynq.Logger.
func (silence) Debug(...any) {}
func (silence) Info(...any)  {}
func (silence) Warn(...any)  {}
func (silence) Error(...any) {}
func (silence) Fatal(...any) {}
