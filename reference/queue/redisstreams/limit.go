package redisstreams

import (
	"context"
	_ "embed" // for the script
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"floodproof/reference/queue"
)

//go:embed lua/take.lua
var luaTake string

// Take implements queue.Limiter, by the server's clock. A limit is a key that goes when the limit is as if nobody had used it.
func (q *Queue) Take(ctx context.Context, limit queue.Limit, n int) (time.Duration, error) {
	if err := limit.Check(); err != nil {
		return 0, err
	}
	if err := q.begin(); err != nil {
		return 0, err
	}
	defer q.calls.Done()
	every := float64(limit.Every()) / float64(time.Microsecond)
	wait, err := redis.NewScript(luaTake).Run(ctx, q.client, []string{q.prefix + "limit:" + limit.Name}, every, limit.Burst, n).Int64()
	if err != nil {
		return 0, fmt.Errorf("take a turn of limit %q: %w", limit.Name, err)
	}
	return time.Duration(wait) * time.Microsecond, nil
}

var _ queue.Limiter = (*Queue)(nil)
