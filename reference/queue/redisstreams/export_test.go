package redisstreams

import "github.com/redis/go-redis/v9"

// Configure sets a client up as the queue's own.
func Configure(o *redis.Options) { configure(o) }
