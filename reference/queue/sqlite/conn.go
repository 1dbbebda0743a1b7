package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	driversqlite "modernc.org/sqlite"
)

// conn is one connection and the statements that were prepared on it. It belongs to one goroutine at a time.
//
// Statements run without a context on purpose: the driver would start a goroutine per statement to watch it, and a
// transaction that serves many callers must not end because one of them left. Callers wait for the answer under their own context instead.
type conn struct {
	raw   driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
}

// connConfig is what differs between the connections of a queue.
type connConfig struct {
	path        string
	synchronous string
	busy        time.Duration
	cacheKiB    int
	walLimit    int64
}

// dsn carries every pragma, because pragmas belong to the connection and not to the file.
func (c connConfig) dsn() string {
	path := filepath.ToSlash(c.path)
	if !strings.HasPrefix(path, "/") { // C:/dir/queue.db
		path = "/" + path
	}
	pragmas := []string{
		fmt.Sprintf("busy_timeout(%d)", c.busy.Milliseconds()),
		"synchronous(" + c.synchronous + ")",
		"wal_autocheckpoint(0)",
		fmt.Sprintf("journal_size_limit(%d)", c.walLimit),
		fmt.Sprintf("cache_size(-%d)", c.cacheKiB),
		"temp_store(MEMORY)",
	}
	if runtime.GOOS == "darwin" {
		// fsync(2) on macOS leaves the data in the drive's cache; F_FULLFSYNC does not (https://www.sqlite.org/pragma.html#pragma_fullfsync).
		pragmas = append(pragmas, "fullfsync(1)", "checkpoint_fullfsync(1)")
	}
	query := url.Values{"_pragma": pragmas, "_journal_mode": {"WAL"}}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}).String()
}

func connect(ctx context.Context, config connConfig) (*conn, error) {
	connector, err := driversqlite.NewConnector(config.dsn())
	if err != nil {
		return nil, fmt.Errorf("parse the data source name of %s: %w", config.path, err)
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", config.path, err)
	}
	return &conn{raw: raw, stmts: make(map[string]driver.Stmt)}, nil
}

func (c *conn) prepare(query string) (driver.Stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	s, err := c.raw.Prepare(query)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	c.stmts[query] = s
	return s, nil
}

// bind puts the arguments into the connection's own slice; the driver copies their bytes.
func (c *conn) bind(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, v := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args
}

// exec runs a statement, or a script of several without arguments. The results are the rows that it changed and the last rowid that it made.
func (c *conn) exec(query string, args ...driver.Value) (changed, rowid int64, err error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, 0, err
	}
	result, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, 0, err
	}
	if changed, err = result.RowsAffected(); err != nil {
		return 0, 0, err
	}
	rowid, err = result.LastInsertId()
	return changed, rowid, err
}

// run runs a statement that takes effect when it is prepared, as some pragmas do, and so cannot be kept.
func (c *conn) run(query string) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(context.Background(), query, nil)
	return err
}

// query calls each for every row. The row's slice is used again for the next one; strings and blobs in it stay valid.
func (c *conn) query(query string, each func(row []driver.Value) error, args ...driver.Value) (err error) {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// integers runs a query that gives one row of integers; NULL becomes absent.
func (c *conn) integers(query string, absent int64, args ...driver.Value) ([]int64, error) {
	var out []int64
	err := c.query(query, func(row []driver.Value) error {
		out = make([]int64, len(row))
		for i, v := range row {
			n, ok := v.(int64)
			if !ok {
				n = absent
			}
			out[i] = n
		}
		return nil
	}, args...)
	if err == nil && out == nil {
		err = errors.New("no row where one was expected")
	}
	return out, err
}

// exists reports whether a query gives a row.
func (c *conn) exists(query string, args ...driver.Value) (found bool, err error) {
	err = c.query(query, func([]driver.Value) error {
		found = true
		return nil
	}, args...)
	return found, err
}

// snapshot lets use see one state of the database, whatever is written meanwhile.
func (c *conn) snapshot(use func() error) (err error) {
	if _, _, err := c.exec(sqlSnapshot); err != nil {
		return err
	}
	defer func() {
		_, _, end := c.exec(sqlCommit)
		err = errors.Join(err, end)
	}()
	return use()
}

func (c *conn) close() error {
	errs := make([]error, 0, len(c.stmts)+1)
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}
