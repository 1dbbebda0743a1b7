package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	"floodproof/reference/queue"
)

// delayAccuracy covers the longest pause between two looks at a lane, and the script that follows.
const delayAccuracy = lookAgain + 50*time.Millisecond

// Claims is what this queue promises, by the settings that were in force when it was opened.
func (q *Queue) Claims() queue.Claims {
	claims := q.claims
	claims.Settings = maps.Clone(claims.Settings)
	return claims
}

// makeClaims asks the server what is in force, and refuses one on which no promise can be made.
func (q *Queue) makeClaims(ctx context.Context) (queue.Claims, error) {
	info, err := q.info(ctx)
	if err != nil {
		return queue.Claims{}, err
	}
	if err := refuse(info); err != nil {
		return queue.Claims{}, err
	}
	settings, err := q.settings(ctx)
	if err != nil {
		return queue.Claims{}, err
	}
	for _, name := range []string{"aof_enabled", "aof_last_write_status", "maxmemory", "maxmemory_policy"} {
		settings[strings.ReplaceAll(name, "_", "-")] = info[name]
	}
	if memory, err := q.inMemory(settings["dir"]); err != nil {
		return queue.Claims{}, fmt.Errorf("find the file system of %s: %w", settings["dir"], err)
	} else if memory {
		settings["filesystem"] = "memory"
	}
	settings["retention"] = q.opts.Retention.String()
	if q.opts.Replicas > 0 {
		settings["wait-replicas"] = strconv.Itoa(q.opts.Replicas)
	}
	delete(settings, "dir") // a path says nothing to the reader of a report
	return queue.Claims{
		Durability:    durability(settings),
		DedupWindow:   q.opts.DedupWindow,
		DelayAccuracy: delayAccuracy,
		Debounce:      true,
		SharedLimit:   true,
		MaxPayload:    q.opts.MaxPayload,
		Settings:      settings,
		Version:       version(info),
	}, nil
}

// durability derives from the server's settings what an answered Enqueue survives.
//
// The settings are explained in https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/ and in the redis.conf of Redis 7.0 (read 2026-11).
func durability(settings map[string]string) queue.Durability {
	switch {
	case settings["aof-enabled"] != "1":
		return queue.DurabilityNone // at best the last snapshot, which is minutes old
	case settings["aof-last-write-status"] != "ok":
		return queue.DurabilityNone
	case settings["appendfsync"] == "":
		return queue.DurabilityNone // the server does not tell: what is not known is not claimed
	case settings["appendfsync"] == "everysec":
		return queue.DurabilityNone // when a sync is slow the server answers before it has written, for up to two seconds
	case settings["appendfsync"] != "always":
		return queue.DurabilityProcess
	case settings["no-appendfsync-on-rewrite"] != "no":
		return queue.DurabilityProcess // "always" stops while the file is rewritten
	case settings["filesystem"] == "memory":
		return queue.DurabilityProcess
	case settings["wait-replicas"] != "":
		return queue.DurabilityFailover
	}
	return queue.DurabilityPower
}

// refuse says why a server must not be used.
func refuse(info map[string]string) error {
	if info["role"] != "master" {
		return fmt.Errorf("the server's role is %q: use the primary", info["role"])
	}
	if info["loading"] == "1" {
		return errors.New("the server is still loading its data: try again")
	}
	if info["maxmemory"] != "0" && info["maxmemory_policy"] != "noeviction" {
		return fmt.Errorf("the server has maxmemory %s with maxmemory-policy %s, which may throw away events when the memory is full: set maxmemory-policy noeviction, or maxmemory 0",
			info["maxmemory"], info["maxmemory_policy"])
	}
	return nil
}

// info is what INFO says, by name.
func (q *Queue) info(ctx context.Context) (map[string]string, error) {
	text, err := q.client.Info(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("ask the server for its state: %w", err)
	}
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

// settings are the server's settings that matter. Where CONFIG is not allowed, as with many hosted servers, they stay unknown.
func (q *Queue) settings(ctx context.Context) (map[string]string, error) {
	settings := make(map[string]string)
	for _, name := range []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "aof-load-truncated", "dir"} {
		found, err := q.client.ConfigGet(ctx, name).Result()
		if isReply(err) {
			settings["config"] = "not readable"
			return settings, nil
		}
		if err != nil {
			return nil, fmt.Errorf("ask the server for %s: %w", name, err)
		}
		maps.Copy(settings, found)
	}
	return settings, nil
}

// inMemory reports whether the directory of a server on this machine lives in memory. Of another machine's nothing is known.
func (q *Queue) inMemory(dir string) (bool, error) {
	host, _, err := net.SplitHostPort(q.client.Options().Addr)
	if err != nil {
		host = "localhost" // a Unix socket
	}
	if ip := net.ParseIP(host); dir == "" || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false, nil
	}
	return inMemory(dir)
}

// version names the engine. Valkey calls itself Redis 7.2 too, for programs that ask.
func version(info map[string]string) string {
	if v := info["valkey_version"]; v != "" {
		return "Valkey " + v
	}
	return "Redis " + info["redis_version"]
}
