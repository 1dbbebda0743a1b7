//go:build linux

package brokers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"floodproof/chaos/cutfs"
	"floodproof/reference/queue"
	"floodproof/reference/queue/nats"
	"floodproof/reference/queue/server"
)

const (
	// natsNodes is how many servers keep the queue. The first one's disk can lose its power.
	natsNodes = 3
	// natsNamespace is the queue's, and natsStream the stream that it is.
	natsNamespace = "power"
	natsStream    = "FP_" + natsNamespace
)

// TestNATSPowerOfOne: of three servers one is away for a while, one loses its power, and the third is gone when the first two come back
// (https://github.com/nats-io/nats-server/issues/7567). Never is the power of more than one cut, and each acknowledged job was stored by two. But of these one had synced nothing of it, with
// the server's own sync_interval of two minutes: it elects a leader together with the one that was away, and neither has heard of the jobs. The third does not bring them back: it has to
// follow, and keeps what it had for itself, so that who asks is told the one or the other. With our sync_interval, which syncs before it acknowledges, all are there, on all servers.
func TestNATSPowerOfOne(t *testing.T) {
	if testing.Short() {
		t.Skip("each election takes seconds")
	}
	for interval, claimed := range map[string]queue.Durability{"always": queue.DurabilityFailover, "2m": queue.DurabilityProcess} {
		t.Run(interval, func(t *testing.T) {
			t.Parallel()
			g := startNATSGroup(t, interval)
			if got := g.open(t).Claims().Durability; got != claimed {
				t.Errorf("claimed: %s, want %s", got, claimed)
			}
			g.losePower(t, interval != "always")
		})
	}
}

// losePower plays the story, and says whether jobs had to be lost.
func (g *natsGroup) losePower(t *testing.T, loses bool) {
	t.Helper()
	unplugged, away, third := g.nodes[0], g.nodes[1], g.nodes[2]
	kept := g.enqueue(t, "long ago", 20)
	g.awaitCurrent(t)
	if err := errors.Join(g.disk.Checkpoint(t.Context()), away.Kill(t.Context())); err != nil {
		t.Fatal(err)
	}
	acked := g.enqueue(t, "by two", 50)
	g.cut(t)
	if err := third.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.restart(t, unplugged, away)
	kept = append(kept, g.enqueue(t, "without the third", 5)...)
	if n := g.missing(t, kept); n > 0 {
		t.Errorf("%d of %d jobs are lost that were synced, or came after the cut", n, len(kept))
	}
	n, stored := g.missing(t, acked), g.stream(t).State.Messages
	t.Logf("%d of %d jobs are lost that two servers had stored", n, len(acked))
	if lost := n > 0; lost != loses {
		t.Errorf("%d of %d acknowledged jobs are lost; have to be: %t", n, len(acked), loses)
	}
	g.restart(t, third)
	if loses {
		if now := g.stream(t); now.State.Messages != stored {
			t.Errorf("the leader has %d messages when the third server is back, and had %d", now.State.Messages, stored)
		}
		return
	}
	g.awaitCurrent(t)
	if n := g.missing(t, append(kept, acked...)); n > 0 {
		t.Errorf("%d jobs are lost when the third server is back", n)
	}
}

// natsGroup is servers that elect whoever leads, the first of them on a disk whose power can be cut.
//
// Note: server.Cluster takes out and promotes whoever leads. Here it matters which server it is that goes.
type natsGroup struct {
	nodes []*server.Server
	disk  *cutfs.FS
}

func startNATSGroup(t *testing.T, interval string) *natsGroup {
	t.Helper()
	g := &natsGroup{disk: mount(t, cutfs.Config{})}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ports, routes := natsRoutes(t)
	logs := t.TempDir() // not on the disk: this process holds them open
	errs := make([]error, natsNodes)
	g.nodes = make([]*server.Server, natsNodes)
	var starting sync.WaitGroup
	for i := range natsNodes {
		name := fmt.Sprint("nats-", i+1)
		dir := g.disk.Mountpoint
		if i > 0 {
			dir = t.TempDir()
		}
		config := server.Config{
			Dir: filepath.Join(dir, "data"), Log: filepath.Join(logs, name+".log"), Tied: true,
			Settings: map[string]string{"sync_interval": interval, "name": name, "cluster_port": ports[i], "routes": routes},
		}
		starting.Go(func() { g.nodes[i], errs[i] = config.Start(t.Context(), server.NATS(program, natsArgument)) })
	}
	starting.Wait()
	t.Cleanup(func() {
		for _, node := range g.nodes {
			if node == nil {
				continue
			}
			if err := node.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return g
}

// natsRoutes are ports on which servers find each other.
func natsRoutes(t *testing.T) (ports []string, routes string) {
	t.Helper()
	taken := map[int]bool{}
	var all []string
	for len(ports) < natsNodes {
		port, err := server.FreePort(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if taken[port] {
			continue
		}
		taken[port] = true
		ports = append(ports, strconv.Itoa(port))
		all = append(all, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	return ports, strings.Join(all, ",")
}

// address is that of all servers.
func (g *natsGroup) address() string {
	var all []string
	for _, node := range g.nodes {
		all = append(all, node.Address())
	}
	return strings.Join(all, ",")
}

// open opens the queue anew: a handle refuses answers that are older than what it has seen, and here what it has seen may be gone.
func (g *natsGroup) open(t *testing.T) *nats.Queue {
	t.Helper()
	var q *nats.Queue
	insist(t, "open the queue", func(ctx context.Context) (err error) {
		q, err = nats.Open(ctx, nats.Options{URL: g.address(), Namespace: natsNamespace, Replicas: natsNodes})
		return err
	})
	t.Cleanup(func() {
		if err := q.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return q
}

// enqueue stores some jobs, each until it is acknowledged.
func (g *natsGroup) enqueue(t *testing.T, name string, n int) (ids []string) {
	t.Helper()
	q := g.open(t)
	for i := range n {
		id := fmt.Sprintf("%s-%02d", name, i)
		insist(t, "enqueue "+id, func(ctx context.Context) error { return q.Enqueue(ctx, job(id)) })
		ids = append(ids, id)
	}
	return ids
}

// cut ends the power of the first server's disk, and puts what that left in its place.
func (g *natsGroup) cut(t *testing.T) {
	t.Helper()
	stats, err := g.disk.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := g.nodes[0].Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, _ := cut(t, g.disk, cutfs.Cut{})
	if err := g.disk.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(g.disk.Mountpoint, os.DirFS(left)); err != nil { // an ordinary directory again
		t.Fatal(err)
	}
	t.Logf("the power is cut: %d syncs, %d bytes were not synced", stats.Syncs, stats.Unsynced)
}

// restart starts servers that do not run, together: one alone may wait for others before it answers.
func (g *natsGroup) restart(t *testing.T, nodes ...*server.Server) {
	t.Helper()
	errs := make([]error, len(nodes))
	var starting sync.WaitGroup
	for i, node := range nodes {
		starting.Go(func() { errs[i] = node.Restart(t.Context()) })
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// natsInfo is what the leader of the queue's stream says of it.
type natsInfo struct {
	State struct {
		Messages int `json:"messages"`
	} `json:"state"`
	Cluster struct {
		Replicas []struct {
			Current bool `json:"current"`
			Offline bool `json:"offline"`
		} `json:"replicas"`
	} `json:"cluster"`
}

// stream asks the leader of the queue's stream, when there is one.
func (g *natsGroup) stream(t *testing.T) (info natsInfo) {
	t.Helper()
	conn, err := client.Connect(g.address(), client.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	insist(t, "ask for the stream", func(ctx context.Context) error {
		answer, err := conn.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+natsStream, nil)
		if err != nil {
			return err
		}
		info = natsInfo{}
		if err := json.Unmarshal(answer.Data, &info); err != nil || len(info.Cluster.Replicas) < natsNodes-1 {
			return errors.Join(fmt.Errorf("the leader says %s", answer.Data), err)
		}
		return nil
	})
	return info
}

// awaitCurrent waits until the leader says of all others that they have what it has.
func (g *natsGroup) awaitCurrent(t *testing.T) {
	t.Helper()
	insist(t, "wait for all servers", func(context.Context) error {
		for _, r := range g.stream(t).Cluster.Replicas {
			if !r.Current || r.Offline {
				return errors.New("one is not up to date")
			}
		}
		return nil
	})
}

// missing counts the jobs that the queue does not know.
func (g *natsGroup) missing(t *testing.T, ids []string) (n int) {
	t.Helper()
	q := g.open(t)
	for _, id := range ids {
		insist(t, "look for "+id, func(ctx context.Context) error {
			_, err := q.Event(ctx, "stripe", id)
			if errors.Is(err, queue.ErrUnknownEvent) {
				n++
				return nil
			}
			return err
		})
	}
	return n
}

// insist repeats a call: those that are under way while servers elect fail, or never end.
func insist(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		once, done := context.WithTimeout(ctx, 10*time.Second)
		err := call(once)
		done()
		if err == nil {
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}
