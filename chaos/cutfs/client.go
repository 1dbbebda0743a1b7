package cutfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"floodproof/chaos/cutfs/disk"
)

// Client tells a serving child what to do. Its methods may be called concurrently; they take turns. After a context has ended a call that was under way, the
// connection is of no use any more.
type Client struct {
	mu      sync.Mutex
	conn    net.Conn
	encoder *json.Encoder
	decoder *json.Decoder
	broken  error
}

// NewClient speaks to a child at the other end of a connection.
func NewClient(conn net.Conn) *Client {
	return &Client{conn: conn, encoder: json.NewEncoder(conn), decoder: json.NewDecoder(conn)}
}

// Arm makes everything durable that is there, and lets the disk crash as m from here on. Call it when the broker is warm.
func (c *Client) Arm(ctx context.Context, m disk.Model) error {
	_, err := c.call(ctx, request{Verb: verbArm, Model: m})
	return err
}

// Checkpoint makes everything durable that is there.
func (c *Client) Checkpoint(ctx context.Context) error {
	_, err := c.call(ctx, request{Verb: verbCheckpoint})
	return err
}

// SlowFsync lets every sync that begins from here on take d longer; 0 ends it.
func (c *Client) SlowFsync(ctx context.Context, d time.Duration) error {
	_, err := c.call(ctx, request{Verb: verbSlow, Latency: d})
	return err
}

// FailFsync lets the next n syncs of files fail with an input/output error, and what was dirty then is lost even if a later sync succeeds; 0 ends it.
func (c *Client) FailFsync(ctx context.Context, n int) error {
	_, err := c.call(ctx, request{Verb: verbFail, Number: n})
	return err
}

// LimitRoom leaves so much room: what does not fit gets ENOSPC, see [disk.Disk.SetRoom]. Nil ends it.
func (c *Client) LimitRoom(ctx context.Context, r *disk.Room) error {
	_, err := c.call(ctx, request{Verb: verbRoom, Room: r})
	return err
}

// Freeze switches the power off. When it returns, nothing more becomes durable, and no operation of the mount ends but those of processes that were sent SIGKILL.
func (c *Client) Freeze(ctx context.Context) (disk.Stats, error) {
	r, err := c.call(ctx, request{Verb: verbFreeze})
	return statsOf(r), err
}

// Stats tells what happened so far.
func (c *Client) Stats(ctx context.Context) (disk.Stats, error) {
	r, err := c.call(ctx, request{Verb: verbStats})
	return statsOf(r), err
}

// Cut freezes, unless that is done, and writes what the crash leaves into a directory. It may be called several times.
func (c *Client) Cut(ctx context.Context, cut Cut) (Result, error) {
	r, err := c.call(ctx, request{Verb: verbCut, Cut: &cut})
	if err != nil {
		return Result{}, err
	}
	if r.Result == nil {
		return Result{}, errors.New("cut the power: the child gave no result")
	}
	return *r.Result, nil
}

func statsOf(r reply) disk.Stats {
	if r.Stats == nil {
		return disk.Stats{}
	}
	return *r.Stats
}

// call sends a request and waits for its reply, or for the context.
func (c *Client) call(ctx context.Context, q request) (reply, error) {
	r, err := c.exchange(ctx, q)
	switch {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil && r.Error != "":
		err = errors.New(r.Error)
	}
	if err != nil {
		return reply{}, fmt.Errorf("cutfs %s: %w", q.Verb, err)
	}
	return r, nil
}

func (c *Client) exchange(ctx context.Context, q request) (r reply, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return reply{}, c.broken
	}
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	defer func() {
		if err != nil {
			c.broken = fmt.Errorf("the connection to the child is broken: %w", err)
		}
	}()
	if err := c.encoder.Encode(q); err != nil {
		return reply{}, err
	}
	err = c.decoder.Decode(&r)
	return r, err
}
