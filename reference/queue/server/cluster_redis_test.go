package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"floodproof/reference/queue/server"
)

// list is a list of texts in whichever server is the primary. If it waits, a text is acknowledged when a replica has it.
type list struct {
	address string
	waits   bool
}

func (s list) do(ctx context.Context, use func(*redis.Conn) error) error {
	for host := range strings.SplitSeq(strings.TrimPrefix(s.address, "redis://"), ",") {
		client := redis.NewClient(&redis.Options{Addr: host, MaxRetries: -1, ContextTimeoutEnabled: true})
		err := func() error {
			conn := client.Conn()
			defer func() { _ = conn.Close() }()
			role, err := conn.Do(ctx, "ROLE").Slice()
			if err != nil || role[0] != "master" {
				return errors.Join(errNotPrimary, err)
			}
			return use(conn)
		}()
		err = errors.Join(err, client.Close())
		if !errors.Is(err, errNotPrimary) {
			return err
		}
	}
	return errNotPrimary
}

var errNotPrimary = errors.New("not the primary")

func (s list) add(ctx context.Context, text string) error {
	return s.do(ctx, func(conn *redis.Conn) error {
		err := conn.RPush(ctx, "texts", text).Err()
		for err != nil && strings.HasPrefix(err.Error(), "NOREPLICAS") && ctx.Err() == nil { // they come back
			err = conn.RPush(ctx, "texts", text).Err()
		}
		if err != nil || !s.waits {
			return err
		}
		for {
			replicas, err := conn.Wait(ctx, 1, alone).Result()
			if err != nil || replicas > 0 {
				return err
			}
			if ctx.Err() != nil { // until then, one that was away may come back
				return errors.New("no replica has it")
			}
		}
	})
}

func (s list) all(ctx context.Context) (texts []string, err error) {
	err = s.do(ctx, func(conn *redis.Conn) (err error) {
		texts, err = conn.LRange(ctx, "texts", 0, -1).Result()
		return err
	})
	return texts, err
}

func TestRedisReplicaTakesOver(t *testing.T) {
	c := startCluster(t, server.RedisReplicas(true))
	checkFailover(t, c, list{c.Address(), true})
}

// TestRedisAcknowledgesOnTwoNodes where the client waits, and on one where it does not, which is then lost.
func TestRedisAcknowledgesOnTwoNodes(t *testing.T) {
	for _, tt := range []struct {
		name           string
		guarded, waits bool
	}{{"waits", false, true}, {"guarded", true, true}, {"neither", false, false}} {
		t.Run(tt.name, func(t *testing.T) {
			c := startCluster(t, server.RedisReplicas(tt.guarded))
			checkDetached(t, c, list{c.Address(), tt.waits}, tt.waits)
		})
	}
}
