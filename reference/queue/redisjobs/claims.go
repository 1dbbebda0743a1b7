package redisjobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"runtime/debug"
	"strings"

	"github.com/redis/go-redis/v9"

	"floodproof/reference/queue"
	"floodproof/reference/queue/bundle"
	"floodproof/reference/queue/inbox"
)

const module = "github.com/hibiken/asynq"

// describe asks the server what is in force, and refuses one on which no promise can be made.
//
// The settings are explained in https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/ and in the redis.conf of Redis 7.0 (read November 2026).
func describe(ctx context.Context, client *redis.Client) (inbox.Promise, error) {
	info, err := ask(ctx, client)
	if err != nil {
		return inbox.Promise{}, err
	}
	settings := map[string]string{
		"aof-enabled": info["aof_enabled"], "aof-last-write-status": info["aof_last_write_status"], "maxmemory": info["maxmemory"], "maxmemory-policy": info["maxmemory_policy"],
	}
	for _, name := range []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "dir"} {
		found, err := client.ConfigGet(ctx, name).Result()
		if reply := redis.Error(nil); errors.As(err, &reply) { // hosted servers often keep their settings to themselves
			settings["config"] = "not readable"
			break
		}
		if err != nil {
			return inbox.Promise{}, fmt.Errorf("ask the server for %s: %w", name, err)
		}
		maps.Copy(settings, found)
	}
	if memory, err := onMemory(client.Options().Addr, settings["dir"]); err != nil {
		return inbox.Promise{}, fmt.Errorf("find the file system of %s: %w", settings["dir"], err)
	} else if memory {
		settings["filesystem"] = "memory"
	}
	delete(settings, "dir") // a path says nothing to the reader of a report
	return inbox.Promise{Durability: durability(settings), MaxMessage: maxMessage - bundle.Overhead, Version: version(info), Settings: settings}, nil
}

// ask is what INFO says, by name, of a server that may be used.
func ask(ctx context.Context, client *redis.Client) (map[string]string, error) {
	text, err := client.Info(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("ask the server for its state: %w", err)
	}
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	switch {
	case info["role"] != "master":
		return nil, fmt.Errorf("the server's role is %q: use the primary", info["role"])
	case info["loading"] == "1":
		return nil, errors.New("the server is still loading its data: try again")
	case info["maxmemory_policy"] != "noeviction":
		return nil, fmt.Errorf("the server has maxmemory-policy %s, which throws away tasks when its memory is full: set maxmemory-policy noeviction", info["maxmemory_policy"])
	}
	return info, nil
}

// durability derives from the server's settings what an answered Publish survives.
func durability(settings map[string]string) queue.Durability {
	switch {
	case settings["aof-enabled"] != "1" || settings["aof-last-write-status"] != "ok":
		return queue.DurabilityNone // at best the last snapshot, which is minutes old
	case settings["appendfsync"] == "" || settings["appendfsync"] == "everysec":
		return queue.DurabilityNone // not known; or, while a sync is slow, answered for up to two seconds without having been written
	case settings["appendfsync"] != "always" || settings["no-appendfsync-on-rewrite"] != "no" || settings["filesystem"] == "memory":
		return queue.DurabilityProcess
	}
	return queue.DurabilityPower
}

// onMemory reports whether the directory of a server on this machine lives in memory. Of another machine's nothing is known.
func onMemory(address, dir string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = "localhost" // a Unix socket
	}
	if ip := net.ParseIP(host); dir == "" || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false, nil
	}
	return inMemory(dir)
}

// version names the library and the engine. Valkey calls itself Redis 7.2 too, for programs that ask.
func version(info map[string]string) string {
	library := "asynq"
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			if m.Path == module {
				library += " " + m.Version
			}
		}
	}
	if v := info["valkey_version"]; v != "" {
		return library + ", Valkey " + v
	}
	return library + ", Redis " + info["redis_version"]
}
