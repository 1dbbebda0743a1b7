package child

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"-port=4222"}, {"-dir=x"}, {"-dir=x", "-port=1", "-sync_interval=sometimes"}, {"-dir=x", "-port=1", "-sync_interval=-2m"}, {"-dir=x", "-port=1", "-cluster_port=2"}, {"-dir=x", "-port=1", "-routes=127.0.0.1:2"}, {"-unknown"}} {
		var out, complaint bytes.Buffer
		if code := run(args, &out, &complaint); code != 2 || complaint.Len() == 0 {
			t.Errorf("%q: got exit code %d and %q, want 2 and a reason", args, code, complaint.String())
		}
	}
}

func TestVersion(t *testing.T) {
	var out, complaint bytes.Buffer
	if code := run([]string{"-version"}, &out, &complaint); code != 0 || !strings.HasPrefix(out.String(), "nats-server 2.") {
		t.Errorf("-version: got exit code %d, %q, %q", code, out.String(), complaint.String())
	}
}

func TestWithParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parent atomic.Int64
		parent.Store(7)
		ctx, stop := withParent(t.Context(), func() int { return int(parent.Load()) }, time.Second)
		defer stop()
		<-time.After(10 * time.Second) // of the bubble's clock
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("ended although its parent is there")
		}
		parent.Store(1)
		<-time.After(2 * time.Second)
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("goes on as an orphan")
		}
	})
}

// TestConfig: what is written is what the server understands.
func TestConfig(t *testing.T) {
	for interval, always := range map[string]bool{"always": true, "90s": false} {
		dir := t.TempDir()
		opts, err := options(settings{dir: dir, port: 4333, syncInterval: interval, maxPayload: 1 << 21, batchMsgs: 2000})
		if err != nil {
			t.Fatal(err)
		}
		if opts.SyncAlways != always || opts.Port != 4333 || opts.Host != "127.0.0.1" || opts.MaxPayload != 1<<21 || opts.JetStreamLimits.MaxBatchSize != 2000 || opts.NoAuthUser != "app" {
			t.Errorf("sync_interval %s: got sync always %v, %s:%d, max_payload %d, batch %d", interval, opts.SyncAlways, opts.Host, opts.Port, opts.MaxPayload, opts.JetStreamLimits.MaxBatchSize)
		}
		if _, err := server.NewServer(opts); err != nil {
			t.Errorf("the server refuses it: %v", err)
		}
	}
}

// TestConfigOfACluster: a server alone has none.
func TestConfigOfACluster(t *testing.T) {
	s := settings{dir: t.TempDir(), port: 4333, syncInterval: "always", maxPayload: 1 << 21, batchMsgs: 2000, name: "nats-2", clusterPort: 6333, routes: "127.0.0.1:6332,127.0.0.1:6333"}
	opts, err := options(s)
	if err != nil {
		t.Fatal(err)
	}
	if opts.ServerName != "nats-2" || opts.Cluster.Name != "floodproof" || opts.Cluster.Host != "127.0.0.1" || opts.Cluster.Port != 6333 || len(opts.Routes) != 2 {
		t.Errorf("got %s in %+v with routes %v", opts.ServerName, opts.Cluster, opts.Routes)
	}
	if _, err := server.NewServer(opts); err != nil {
		t.Errorf("the server refuses it: %v", err)
	}
	s.clusterPort, s.routes = 0, ""
	if opts, err = options(s); err != nil || opts.Cluster.Port != 0 {
		t.Errorf("a server alone: got %+v, error %v", opts.Cluster, err)
	}
}
