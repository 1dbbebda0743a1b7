package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisReplicas is a primary of [Redis] and two replicas. Redis answers before any replica has something; whoever wants more asks by WAIT, which a replica answers when it has it in its
// memory (https://redis.io/docs/latest/commands/wait/, read December 2026). If guarded, a primary that nobody follows takes no writes (min-replicas-to-write), so that it
// does not go on alone behind a broken link.
//
// The replica that has most takes over, as Redis Sentinel would choose: with two of them, what WAIT said of one is there. The other one follows it.
//
// The address has all hosts. A client has to find the one whose role is master.
func RedisReplicas(guarded bool) Topology {
	return Topology{
		Kind: Redis(), Nodes: 3,
		Introduce: func(_ context.Context, nodes []*Server) error {
			for _, node := range nodes {
				node.set("repl-diskless-sync-delay", "0") // of those that may come together, nobody waits for the others
				if guarded {
					node.set("min-replicas-to-write", "1")
				}
			}
			return nil
		},
		Follow: func(_ context.Context, node, leader *Server) error {
			followRedis(node, leader)
			return nil
		},
		Admit:   admitRedis,
		Leader:  redisLeader,
		Promote: promoteRedis,
		Detach:  detachRedis,
		Address: func(nodes []Instance) string {
			var hosts []string
			for _, in := range nodes {
				hosts = append(hosts, "127.0.0.1:"+strconv.Itoa(in.Port))
			}
			return "redis://" + strings.Join(hosts, ",")
		},
	}
}

// followRedis says whom a node follows from its next start on.
func followRedis(node, leader *Server) {
	node.set("replicaof", "127.0.0.1 "+strconv.Itoa(leader.Instance.Port))
}

// admitRedis asks the primary for its replicas: "slave0:ip=127.0.0.1,port=6380,state=online,offset=1,lag=0".
func admitRedis(ctx context.Context, node, leader *Server) error {
	info, err := redisReplication(ctx, leader)
	if err != nil {
		return err
	}
	for name, value := range info {
		if strings.HasPrefix(name, "slave") && strings.Contains(value, fmt.Sprintf("port=%d,", node.Instance.Port)) {
			if strings.Contains(value, "state=online") {
				return nil
			}
			return fmt.Errorf("the replica is not online: %s", value)
		}
	}
	return errors.New("the primary does not know the replica")
}

// redisLeader finds the one whose role is master.
func redisLeader(ctx context.Context, nodes []*Server) (*Server, error) {
	var errs []error
	for _, node := range nodes {
		info, err := redisReplication(ctx, node)
		if err == nil && info["role"] == "master" {
			return node, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(append(errs, errors.New("no node is the primary"))...)
}

// promoteRedis promotes the replica with the highest offset, and lets the others follow it.
func promoteRedis(ctx context.Context, nodes []*Server) error {
	next, err := most(nodes, func(node *Server) (int64, error) {
		info, err := redisReplication(ctx, node)
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(info["slave_repl_offset"], 10, 64)
	})
	if err != nil {
		return err
	}
	next.set("replicaof", "")
	if err := askRedis(ctx, next, "REPLICAOF", "NO", "ONE"); err != nil {
		return err
	}
	for _, node := range nodes {
		if node == next {
			continue
		}
		followRedis(node, next)
		if err := askRedis(ctx, node, "REPLICAOF", "127.0.0.1", next.Instance.Port); err != nil {
			return err
		}
	}
	return nil
}

// detachRedis lets a replica follow somebody who is not there: it keeps what it has.
func detachRedis(ctx context.Context, node *Server) (func(context.Context) error, error) {
	info, err := redisReplication(ctx, node)
	if err != nil {
		return nil, err
	}
	if err := askRedis(ctx, node, "REPLICAOF", "127.0.0.1", 1); err != nil { // the port of tcpmux, which has nobody on the loopback
		return nil, err
	}
	return func(ctx context.Context) error {
		return askRedis(ctx, node, "REPLICAOF", info["master_host"], info["master_port"])
	}, nil
}

// redisReplication is what INFO says about replication, by name.
func redisReplication(ctx context.Context, node *Server) (map[string]string, error) {
	var text string
	err := onRedis(node, func(c *redis.Client) (err error) {
		text, err = c.Info(ctx, "replication").Result()
		return err
	})
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, err
}

func askRedis(ctx context.Context, node *Server, command ...any) error {
	return onRedis(node, func(c *redis.Client) error { return c.Do(ctx, command...).Err() })
}

// redisPatience bounds one question to a node.
const redisPatience = 2 * time.Second

// onRedis asks one node.
func onRedis(node *Server, ask func(*redis.Client) error) error {
	c := redis.NewClient(&redis.Options{
		Addr: strings.TrimPrefix(node.Address(), "redis://"), Protocol: 2, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: redisPatience, ReadTimeout: redisPatience, WriteTimeout: redisPatience, ContextTimeoutEnabled: true, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return errors.Join(ask(c), c.Close())
}
