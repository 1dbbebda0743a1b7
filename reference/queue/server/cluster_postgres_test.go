package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"floodproof/reference/queue/server"
)

// alone is how long a leader is given to acknowledge something although nobody follows.
const alone = 500 * time.Millisecond

// table is a table of texts.
type table struct{ address string }

func (s table) do(ctx context.Context, use func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.address)
	if err != nil {
		return err
	}
	return errors.Join(use(conn), conn.Close(context.WithoutCancel(ctx)))
}

func (s table) add(ctx context.Context, text string) error {
	return s.do(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "INSERT INTO texts VALUES ($1)", text)
		return err
	})
}

func (s table) all(ctx context.Context) (list []string, err error) {
	err = s.do(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT text FROM texts")
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return list, err
}

func startPostgresCluster(t *testing.T, synchronous bool) (*server.Cluster, table) {
	t.Helper()
	c := startCluster(t, server.PostgresStandby(synchronous))
	s := table{c.Address()}
	err := s.do(t.Context(), func(conn *pgx.Conn) error {
		_, err := conn.Exec(t.Context(), "CREATE TABLE texts (text text)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func TestPostgresStandbyTakesOver(t *testing.T) {
	c, s := startPostgresCluster(t, true)
	checkFailover(t, c, s)
}

// TestPostgresAcknowledgesOnTwoNodes, and with an asynchronous standby on one, which is then lost.
func TestPostgresAcknowledgesOnTwoNodes(t *testing.T) {
	for name, synchronous := range map[string]bool{"synchronous": true, "asynchronous": false} {
		t.Run(name, func(t *testing.T) {
			c, s := startPostgresCluster(t, synchronous)
			checkDetached(t, c, s, synchronous)
		})
	}
}
