package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"floodproof/reference/queue"
)

// settingNames are the settings of the server that matter for durability and speed.
var settingNames = []string{
	"fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "wal_level", "synchronous_standby_names", "commit_delay", "data_checksums",
	"autovacuum", "autovacuum_naptime", "checkpoint_timeout", "max_wal_size", "shared_buffers", "data_directory", "server_version",
}

// Claims is what this queue promises by the settings that were in force when it was opened.
func (q *Queue) Claims() queue.Claims {
	claims := q.claims
	claims.Settings = maps.Clone(claims.Settings)
	return claims
}

// makeClaims asks the server for what is in force instead of repeating what was asked for.
func (q *Queue) makeClaims(ctx context.Context, conn *pgx.Conn) (queue.Claims, error) {
	settings := make(map[string]string)
	rows, err := conn.Query(ctx, "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY ($1)", settingNames)
	if err != nil {
		return queue.Claims{}, fmt.Errorf("read the settings: %w", err)
	}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		settings[name] = value
		return nil
	})
	if err != nil {
		return queue.Claims{}, fmt.Errorf("read the settings: %w", err)
	}
	var platform string
	var logged bool
	err = conn.QueryRow(ctx, `SELECT version(), bool_and(relpersistence = 'p') FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r'`,
		pgx.Identifier{q.opts.Namespace}.Sanitize()).Scan(&platform, &logged)
	if err != nil {
		return queue.Claims{}, fmt.Errorf("look at the tables: %w", err)
	}
	if !logged {
		settings["tables"] = "unlogged"
	}
	if err := askStandbys(ctx, conn, settings); err != nil {
		return queue.Claims{}, fmt.Errorf("look at the standbys: %w", err)
	}
	memory, err := inMemory(conn.Config().Host, settings["data_directory"])
	if err != nil {
		return queue.Claims{}, fmt.Errorf("find the file system: %w", err)
	}
	if memory {
		settings["filesystem"] = "memory"
	}
	version := settings["server_version"]
	delete(settings, "server_version")
	delete(settings, "data_directory") // it is of no use to the reader of a report
	return queue.Claims{
		Durability:    durability(settings, platform),
		DedupWindow:   cmp.Or(q.opts.Retention, queue.Forever),
		DelayAccuracy: delayAccuracy,
		Debounce:      true,
		SharedLimit:   true,
		MaxPayload:    q.opts.MaxPayload,
		Settings:      settings,
		Version:       "PostgreSQL " + version,
	}, nil
}

// durability is what the settings promise (https://www.postgresql.org/docs/15/runtime-config-wal.html, read November 2026).
//
// Without a synchronous commit the log waits in the server's own memory for up to three times wal_writer_delay, and so does not even survive the end of
// the server's processes; without logging, the tables are emptied when it starts again. Without fsync the operating system has what was acknowledged, and
// without full page writes a page that was half written cannot be repaired; either survives the processes and not the power.
//
// What a commit waits for on a synchronous standby survives the loss of the primary too, if nobody promotes another standby than one of those.
func durability(settings map[string]string, platform string) queue.Durability {
	switch {
	case settings["synchronous_commit"] == "off" || settings["tables"] == "unlogged":
		return queue.DurabilityNone
	case settings["fsync"] != "on" || settings["full_page_writes"] != "on" || settings["filesystem"] == "memory":
		return queue.DurabilityProcess
	case strings.Contains(platform, "-apple-") && settings["wal_sync_method"] != "fsync_writethrough":
		return queue.DurabilityProcess // anything else stops at the cache of the drive there
	case settings["synchronous_standbys"] != "" && settings["synchronous_commit"] != "local":
		return queue.DurabilityFailover
	}
	return queue.DurabilityPower
}

// askStandbys adds how many standbys a commit may wait for, if there are any, and an address that leads to whichever server takes writes: with one that does not, a standby that took over
// would not be found. Without the right to see them nothing is said.
func askStandbys(ctx context.Context, conn *pgx.Conn, settings map[string]string) error {
	if conn.Config().ValidateConnect == nil { // there is no target_session_attrs
		return nil
	}
	var standbys int
	err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')").Scan(&standbys)
	if err == nil && standbys > 0 {
		settings["synchronous_standbys"] = strconv.Itoa(standbys)
	}
	return err
}

// inMemory reports whether the data of a server on this machine lies on a file system in memory. Of other machines, and without the right to
// know where the data is, nothing can be said.
func inMemory(host, dataDirectory string) (bool, error) {
	ip := net.ParseIP(host)
	local := host == "localhost" || filepath.IsAbs(host) || ip != nil && ip.IsLoopback()
	if !local || dataDirectory == "" {
		return false, nil
	}
	return memoryFilesystem(dataDirectory)
}
