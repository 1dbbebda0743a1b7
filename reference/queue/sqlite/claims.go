package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"

	driversqlite "modernc.org/sqlite"

	"floodproof/reference/queue"
)

// Claims is what this queue promises. In a directory that lives in memory, and with SynchronousNormal, that is less.
func (q *Queue) Claims() queue.Claims {
	claims := q.claims
	claims.Settings = maps.Clone(claims.Settings)
	return claims
}

// makeClaims asks the connection for what is in force instead of repeating what was asked for.
func (q *Queue) makeClaims(c *conn) (queue.Claims, error) {
	settings := map[string]string{"lock": lockName, "wal_limit": strconv.FormatInt(q.opts.WALLimit, 10), "sync": "fsync"}
	if driversqlite.FdatasyncEnabled() {
		settings["sync"] = "fdatasync"
	}
	for name, query := range map[string]string{"version": "SELECT sqlite_version()", "journal_mode": "PRAGMA journal_mode", "synchronous": "PRAGMA synchronous", "page_size": "PRAGMA page_size"} {
		err := c.query(query, func(row []driver.Value) error {
			settings[name] = fmt.Sprint(row[0])
			return nil
		})
		if err != nil {
			return queue.Claims{}, fmt.Errorf("read %s: %w", name, err)
		}
	}
	if settings["journal_mode"] != "wal" {
		return queue.Claims{}, fmt.Errorf("journal mode is %q: the file system must support WAL (https://www.sqlite.org/wal.html)", settings["journal_mode"])
	}
	durability := queue.DurabilityProcess
	switch settings["synchronous"] { // as numbers: https://www.sqlite.org/pragma.html#pragma_synchronous
	case "1":
		settings["synchronous"] = SynchronousNormal
	case "2":
		settings["synchronous"], durability = SynchronousFull, queue.DurabilityPower
	}
	memory, err := inMemory(q.dir)
	if err != nil {
		return queue.Claims{}, fmt.Errorf("find the file system: %w", err)
	}
	if memory {
		settings["filesystem"], durability = "memory", queue.DurabilityProcess
	}
	version := "SQLite " + settings["version"]
	delete(settings, "version")
	known := queue.Forever
	if q.opts.Retention > 0 {
		known = q.opts.Retention
	}
	return queue.Claims{
		Durability:    durability,
		DedupWindow:   known,
		DelayAccuracy: delayAccuracy,
		Debounce:      true,
		SharedLimit:   true,
		MaxPayload:    q.opts.MaxPayload,
		Settings:      settings,
		Version:       version,
	}, nil
}

// DiskBytes is how much the queue takes on the disk now: the database, its write-ahead log and the index of that, and the log of what was enqueued.
func (q *Queue) DiskBytes() (int64, error) {
	var total int64
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(q.path() + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("measure the queue's files: %w", err)
		}
		total += info.Size()
	}
	log, err := q.log.bytes()
	if err != nil {
		return 0, fmt.Errorf("measure the log: %w", err)
	}
	return total + log, nil
}
