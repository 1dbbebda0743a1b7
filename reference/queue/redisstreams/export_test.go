package redisstreams

import "github.com/redis/go-redis/v9"

// Configure sets a client up as the queue's own.
func Configure(o *redis.Options) { configure(o) }

// Sweep takes out of the order of coming what is kept no more, as it happens now and then.
func (q *Queue) Sweep() error { return q.sweep() }
