package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgresPatience bounds one question to a node.
const postgresPatience = 5 * time.Second

// PostgresStandby is a primary and one standby. If the standby is synchronous, the primary answers a commit when both have synced it
// (https://www.postgresql.org/docs/15/warm-standby.html#SYNCHRONOUS-REPLICATION, read November 2026); if not, when it has itself, and a standby that takes over lacks what was on its way.
//
// The standby, once promoted, waits for nobody until it has a standby of its own: what is promised is to survive the loss of one machine, and while one is lost it has happened.
//
// A client gives the address with all hosts to its driver, which finds the one that takes writes (target_session_attrs=read-write).
//
// Note: a lost primary comes back as a copy of the new one. pg_rewind would copy less, but needs checksums or hints in the log, and a queue's data is small.
func PostgresStandby(synchronous bool) Topology {
	return Topology{
		Kind: Postgres(), Nodes: 2,
		Introduce: func(_ context.Context, nodes []*Server) error {
			for _, node := range nodes {
				node.set("wal_keep_size", cmp.Or(node.Instance.Settings["wal_keep_size"], "256MB")) // for a standby that was away
				node.set("wal_retrieve_retry_interval", "500ms")                                    // its default of 5 s would be most of what a restart takes
			}
			return nil
		},
		Follow: followPostgres,
		Admit: func(ctx context.Context, node, leader *Server) error {
			return admitPostgres(ctx, node, leader, synchronous)
		},
		Leader:  postgresLeader,
		Promote: promotePostgres,
		Detach:  detachPostgres,
		Address: postgresAddresses,
	}
}

// postgresAddresses has the password of the first, which all have by copying it.
func postgresAddresses(nodes []Instance) string {
	u, err := url.Parse(postgresAddress(nodes[0]))
	if err != nil {
		return ""
	}
	var hosts []string
	for _, in := range nodes {
		hosts = append(hosts, "127.0.0.1:"+strconv.Itoa(in.Port))
	}
	u.Host = strings.Join(hosts, ",")
	u.RawQuery = "sslmode=disable&target_session_attrs=read-write"
	return u.String()
}

// followPostgres copies the leader, with the settings that make the copy follow it. As at initdb, the copy is moved to its place when it is whole.
func followPostgres(ctx context.Context, node, leader *Server) error {
	program, err := besidePostgres(node.Instance.Binary.Path, "pg_basebackup")
	if err != nil {
		return err
	}
	password, err := os.ReadFile(passwordPath(leader.Instance.Dir))
	if err != nil {
		return err
	}
	work, data := filepath.Join(node.Instance.Dir, "init"), filepath.Join(node.Instance.Dir, "data")
	files := filepath.Join(work, "data")
	err = errors.Join(os.RemoveAll(work), os.RemoveAll(data), os.MkdirAll(files, 0o700), os.WriteFile(passwordPath(node.Instance.Dir), password, 0o600))
	if err != nil {
		return err
	}
	from := fmt.Sprintf("host=127.0.0.1 port=%d user=postgres sslmode=disable application_name=%s", leader.Instance.Port, node.name())
	cmd := exec.CommandContext(ctx, program, "-d", from, "-D", files, "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-password")
	cmd.Env = append(os.Environ(), "PGPASSWORD="+string(password)) // everybody can read the arguments
	if err := asServerUser(cmd, work); err != nil {
		return err
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, said)
	}
	return errors.Join(os.Rename(files, data), syncDir(node.Instance.Dir), os.RemoveAll(work))
}

// admitPostgres lets the leader wait for a standby that has caught up.
func admitPostgres(ctx context.Context, node, leader *Server, synchronous bool) error {
	return onPostgres(ctx, leader, func(conn *pgx.Conn) error {
		var state, sync string
		err := conn.QueryRow(ctx, "SELECT state, sync_state FROM pg_stat_replication WHERE application_name = $1", node.name()).Scan(&state, &sync)
		switch {
		case err != nil:
			return err
		case state != "streaming":
			return fmt.Errorf("the standby is at the stage %q", state)
		case !synchronous || sync == "sync":
			return nil
		}
		return errors.Join(errors.New("the primary does not wait for the standby yet"), setPostgres(ctx, conn, "synchronous_standby_names", pgx.Identifier{node.name()}.Sanitize()))
	})
}

// postgresLeader finds the one that is not recovering.
func postgresLeader(ctx context.Context, nodes []*Server) (*Server, error) {
	var errs []error
	for _, node := range nodes {
		var follows bool
		err := onPostgres(ctx, node, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&follows) })
		if err == nil && !follows {
			return node, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(append(errs, errors.New("no node is the primary"))...)
}

// promotePostgres promotes the standby that has most of the log. It shall not wait for the one that is lost.
func promotePostgres(ctx context.Context, nodes []*Server) error {
	next, err := most(nodes, func(node *Server) (at int64, err error) {
		return at, onPostgres(ctx, node, func(conn *pgx.Conn) error {
			return conn.QueryRow(ctx, "SELECT pg_wal_lsn_diff(coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0')::bigint").Scan(&at)
		})
	})
	if err != nil {
		return err
	}
	return onPostgres(ctx, next, func(conn *pgx.Conn) error {
		if err := setPostgres(ctx, conn, "synchronous_standby_names", ""); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "SELECT pg_promote(false)")
		return err
	})
}

// detachPostgres lets a standby ask nobody for the log.
func detachPostgres(ctx context.Context, node *Server) (func(context.Context) error, error) {
	var before string
	attach := func(ctx context.Context) error {
		return onPostgres(ctx, node, func(conn *pgx.Conn) error { return setPostgres(ctx, conn, "primary_conninfo", before) })
	}
	err := onPostgres(ctx, node, func(conn *pgx.Conn) error {
		if err := conn.QueryRow(ctx, "SHOW primary_conninfo").Scan(&before); err != nil {
			return err
		}
		return setPostgres(ctx, conn, "primary_conninfo", "")
	})
	if err != nil {
		return nil, err
	}
	err = until(ctx, func(ctx context.Context) error {
		return onPostgres(ctx, node, func(conn *pgx.Conn) error {
			var receivers int
			if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_wal_receiver").Scan(&receivers); err != nil {
				return err
			}
			if receivers > 0 {
				return errors.New("the standby still receives")
			}
			return nil
		})
	})
	if err != nil {
		return nil, errors.Join(err, attach(context.WithoutCancel(ctx)))
	}
	return attach, nil
}

// setPostgres changes a setting where it outlives the server, also of a standby, and lets it be read.
func setPostgres(ctx context.Context, conn *pgx.Conn, name, value string) error {
	quoted := "'" + strings.ReplaceAll(value, "'", "''") + "'"
	if _, err := conn.Exec(ctx, "ALTER SYSTEM SET "+name+" = "+quoted); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	if _, err := conn.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
		return fmt.Errorf("let the server read %s: %w", name, err)
	}
	return nil
}

// onPostgres asks one node.
func onPostgres(ctx context.Context, node *Server, ask func(*pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, postgresPatience)
	defer cancel()
	conn, err := pgx.Connect(ctx, node.Address())
	if err != nil {
		return err
	}
	err = ask(conn)
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}
