package redisjobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"floodproof/reference/queue"
	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/redisjobs"
	"floodproof/reference/queue/server"
)

// inspector is asynq's own view of a server.
func inspector(t testing.TB, address string) *asynq.Inspector {
	t.Helper()
	return asynq.NewInspectorFromRedisClient(client(t, address))
}

func publish(t testing.TB, tr *redisjobs.Transport, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if err := tr.Publish(t.Context(), [][]byte{[]byte(m)}); err != nil {
			t.Fatalf("Publish: %v", err)
		}
	}
}

// fetch fetches n messages, in as many calls as it needs.
func fetch(t testing.TB, tr *redisjobs.Transport, n int) []inbox.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	var got []inbox.Message
	for len(got) < n {
		some, err := tr.Fetch(ctx, n-len(got))
		if err != nil {
			t.Fatalf("Fetch after %d of %d messages: %v", len(got), n, err)
		}
		got = append(got, some...)
	}
	return got
}

func ack(t testing.TB, tr *redisjobs.Transport, messages []inbox.Message) {
	t.Helper()
	if err := tr.Ack(t.Context(), messages); err != nil {
		t.Fatalf("Ack: %v", err)
	}
}

func wantWaiting(t testing.TB, tr *redisjobs.Transport, want int64) {
	t.Helper()
	if got, err := tr.Waiting(t.Context()); err != nil || got != want {
		t.Errorf("Waiting: got %d, %v, want %d", got, err, want)
	}
}

// die makes a task that waits one whose holder took it and died at once: what asynq's script for taking one does, and nothing after it. The lease is as long as said.
func die(t testing.TB, c *redis.Client, namespace string, lease time.Duration) (id string) {
	t.Helper()
	key := "asynq:{" + namespace + "}:"
	id, err := c.LMove(t.Context(), key+"pending", key+"active", "RIGHT", "LEFT").Result()
	if err != nil {
		t.Fatalf("take a task: %v", err)
	}
	if err := c.HSet(t.Context(), key+"t:"+id, "state", "active").Err(); err != nil {
		t.Fatal(err)
	}
	if lease == 0 {
		return id
	}
	if err := c.ZAdd(t.Context(), key+"lease", redis.Z{Score: float64(time.Now().Add(lease).Unix()), Member: id}).Err(); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestUnique shows why the option is not used: the lock of a task that was not stored stays, and the next of its kind is refused although there is none. If this fails, asynq has
// learned better, and doc.go should say so.
func TestUnique(t *testing.T) {
	opts := onShared(t)
	c := asynq.NewClientFromRedisClient(client(t, opts.Address))
	add := func(body, id string) error {
		_, err := c.EnqueueContext(t.Context(), asynq.NewTask("x", []byte(body)), asynq.Queue(opts.Namespace), asynq.TaskID(id), asynq.Unique(time.Hour))
		return err
	}
	if err := add("a", "1"); err != nil {
		t.Fatal(err)
	}
	if err := add("b", "1"); !errors.Is(err, asynq.ErrTaskIDConflict) {
		t.Errorf("another task with the id of the first: got error %v, want %v", err, asynq.ErrTaskIDConflict)
	}
	if err := add("b", "2"); !errors.Is(err, asynq.ErrDuplicateTask) {
		t.Errorf("the same with an id of its own: got error %v; the lock is no longer left behind", err)
	}
	ours := onShared(t)
	q := open(t, ours)
	enqueue(t, q, "a", "b", "a")
	keys, err := client(t, ours.Address).Keys(t.Context(), "asynq:{"+ours.Namespace+"}:unique*").Result()
	if err != nil || len(keys) != 0 {
		t.Errorf("locks of our queue: got %q, %v, want none", keys, err)
	}
}

// TestHolderDies: a task whose holder dies comes again soon, as often as that happens, and none is counted as a failure, of which asynq would archive it.
func TestHolderDies(t *testing.T) {
	t.Parallel()
	opts := onShared(t)
	c, look := client(t, opts.Address), inspector(t, opts.Address)
	tr := connect(t, opts)
	publish(t, tr, "survivor")
	for i := range 3 {
		id := die(t, c, opts.Namespace, -time.Second)
		helper := connect(t, opts)
		if got := fetch(t, helper, 1); string(got[0].Body) != "survivor" {
			t.Fatalf("got %q", got[0].Body)
		}
		if i < 2 { // goes away without an acknowledgement
			if err := helper.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			info, err := look.GetTaskInfo(opts.Namespace, id)
			if err != nil || info.State != asynq.TaskStatePending || info.Retried != 0 {
				t.Errorf("after death %d: got %+v, %v, want it pending and without a failure", i+1, info, err)
			}
			continue
		}
		wantWaiting(t, tr, 1)
	}
}

// TestJustTaken: a holder that dies at once after it took a task leaves a lease of 30 seconds. It is not waited for to its end, let alone for another 30 seconds and a
// minute's turn.
func TestJustTaken(t *testing.T) {
	t.Parallel()
	opts := onShared(t)
	tr := connect(t, opts)
	publish(t, tr, "fresh")
	die(t, client(t, opts.Address), opts.Namespace, 30*time.Second)
	begin := time.Now()
	ack(t, tr, fetch(t, tr, 1))
	t.Logf("came after %v", time.Since(begin).Round(100*time.Millisecond))
	wantWaiting(t, tr, 0)
}

// TestLeaseLost: a task in hand whose lease is not there any more (https://github.com/hibiken/asynq/issues/1144) comes again.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	opts := onShared(t)
	tr := connect(t, opts)
	publish(t, tr, "stranded")
	die(t, client(t, opts.Address), opts.Namespace, 0)
	ack(t, tr, fetch(t, tr, 1))
	wantWaiting(t, tr, 0)
}

// TestTakenTwice: a task that came again while its first holder lives is acknowledged by both, in any order, and is gone.
func TestTakenTwice(t *testing.T) {
	t.Parallel()
	opts := onShared(t)
	slow, fast := connect(t, opts), connect(t, opts)
	publish(t, slow, "shared")
	first := fetch(t, slow, 1)
	if err := client(t, opts.Address).Del(t.Context(), "asynq:{"+opts.Namespace+"}:lease").Err(); err != nil { // as if it had stood still for long
		t.Fatal(err)
	}
	var second []inbox.Message
	taker := fast
	for len(second) == 0 { // whichever of them takes it
		for _, taker = range []*redisjobs.Transport{fast, slow} {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			second, _ = taker.Fetch(ctx, 1)
			cancel()
			if len(second) > 0 {
				break
			}
		}
	}
	ack(t, slow, first)
	ack(t, taker, second)
	wantWaiting(t, slow, 0)
}

// TestCloseGivesBack: what was fetched and not acknowledged is there for others at once.
func TestCloseGivesBack(t *testing.T) {
	t.Parallel()
	opts := onShared(t)
	first, second := connect(t, opts), connect(t, opts)
	publish(t, first, "a", "b", "c")
	got := fetch(t, first, 3)
	ack(t, first, got[:1])
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Fetch(t.Context(), 1); err == nil {
		t.Error("Fetch after Close: got no error")
	}
	rest := fetch(t, second, 2)
	for _, m := range rest {
		if bytes.Equal(m.Body, got[0].Body) {
			t.Errorf("%q was acknowledged and came again", m.Body)
		}
	}
	ack(t, second, rest)
	wantWaiting(t, second, 0)
}

// TestSizes: messages share tasks, and a large one comes through whole.
func TestSizes(t *testing.T) {
	opts := onShared(t)
	tr := connect(t, opts)
	var messages [][]byte
	for i, size := range []int{1, 100, 300_000, 500_000, 600_000, 20 << 20, 5} {
		messages = append(messages, bytes.Repeat([]byte{byte(i)}, size))
	}
	if err := tr.Publish(t.Context(), messages); err != nil {
		t.Fatalf("Publish: %v", err)
	}
	wantWaiting(t, tr, 4)
	got := fetch(t, tr, len(messages))
	for _, m := range got {
		if i := m.Body[0]; !bytes.Equal(m.Body, messages[i]) {
			t.Errorf("message %d has %d bytes, want %d", i, len(m.Body), len(messages[i]))
		}
	}
	ack(t, tr, got)
	wantWaiting(t, tr, 0)
}

// TestClaimsFollowTheServer: a server with weaker settings promises less.
func TestClaimsFollowTheServer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings map[string]string
		want     queue.Durability
	}{
		{"defaults", nil, queue.DurabilityPower},
		{"everysec", map[string]string{"appendfsync": "everysec"}, queue.DurabilityNone},
		{"no sync", map[string]string{"appendfsync": "no"}, queue.DurabilityProcess},
		{"no sync during a rewrite", map[string]string{"no-appendfsync-on-rewrite": "yes"}, queue.DurabilityProcess},
		{"no append-only file", map[string]string{"appendonly": "no"}, queue.DurabilityNone},
		{"a limit of memory", map[string]string{"maxmemory": "100mb"}, queue.DurabilityPower},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := open(t, redisjobs.Options{Address: private(t, tt.settings).Address(), Dir: t.TempDir()}).Claims()
			if c.Durability != tt.want || c.DedupWindow != queue.Forever {
				t.Errorf("claims: got %+v, want %q", c, tt.want)
			}
			if !strings.HasPrefix(c.Version, "asynq") || !strings.Contains(c.Version, "Redis ") && !strings.Contains(c.Version, "Valkey ") {
				t.Errorf("version: got %q", c.Version)
			}
		})
	}
}

// TestClaimsWithoutConfig: of a server that does not tell its settings nothing is claimed.
func TestClaimsWithoutConfig(t *testing.T) {
	s := private(t, nil)
	if err := client(t, s.Address()).ACLSetUser(t.Context(), "guest", "on", ">secret", "~*", "&*", "+@all", "-config").Err(); err != nil {
		t.Fatal(err)
	}
	q := open(t, redisjobs.Options{Address: strings.Replace(s.Address(), "redis://", "redis://guest:secret@", 1), Dir: t.TempDir()})
	if got := q.Claims(); got.Durability != queue.DurabilityNone || got.Settings["config"] != "not readable" {
		t.Errorf("claims: got %+v, want no durability", got)
	}
	enqueue(t, q, "taken all the same")
}

func TestClaimsInMemory(t *testing.T) {
	const shm = "/dev/shm"
	if _, err := os.Stat(shm); err != nil || runtime.GOOS != "linux" {
		t.Skipf("needs %s of Linux", shm)
	}
	dir, err := os.MkdirTemp(shm, "floodproof") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		t.Skipf("needs a writable %s: %v", shm, err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := server.Start(t.Context(), server.Redis(), dir, nil)
	skipWithout(t, err)
	t.Cleanup(func() { _ = s.Stop(t.Context()) })
	if got := open(t, redisjobs.Options{Address: s.Address(), Dir: t.TempDir()}).Claims().Durability; got != queue.DurabilityProcess {
		t.Errorf("durability in memory: got %q, want %q", got, queue.DurabilityProcess)
	}
}

// TestOpenRefuses: a server that may throw tasks away, or that takes none, is refused with the reason.
func TestOpenRefuses(t *testing.T) {
	s := private(t, nil)
	c := client(t, s.Address())
	refused := func(want string) {
		t.Helper()
		tr, err := redisjobs.Connect(t.Context(), redisjobs.Options{Address: s.Address()})
		if err == nil {
			_ = tr.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Connect: got error %v, want one that says %q", err, want)
		}
	}
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		if err := c.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		refused("set maxmemory-policy noeviction")
	}
	if err := c.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Process(t.Context(), redis.NewStatusCmd(t.Context(), "replicaof", "127.0.0.1", "1")); err != nil {
		t.Fatal(err)
	}
	refused("use the primary")
	for name, opts := range map[string]redisjobs.Options{
		"no address": {}, "no URL": {Address: "127.0.0.1:6379"}, "another scheme": {Address: "http://user:secret@127.0.0.1:1"}, "an odd namespace": {Address: s.Address(), Namespace: "a{b}"},
	} {
		if tr, err := redisjobs.Connect(t.Context(), opts); err == nil {
			_ = tr.Close(t.Context())
			t.Errorf("Connect with %s: got no error", name)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("Connect with %s: the error tells the password: %v", name, err)
		}
	}
	if q, err := redisjobs.Open(t.Context(), redisjobs.Options{Address: s.Address()}); err == nil {
		_ = q.Close(t.Context())
		t.Error("Open without a directory: got no error")
	}
}

// TestManyAtOnce: what several publish and several fetch is there once each.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	opts := onShared(t)
	a, b := open(t, opts), open(t, opts)
	errs := make(chan error, 8)
	for g := range cap(errs) {
		go func() {
			var err error
			for i := range 50 {
				err = errors.Join(err, a.Enqueue(t.Context(), job(fmt.Sprintf("many-%d-%d", g, i))))
			}
			errs <- err
		}()
	}
	got := make(map[string]int)
	for len(got) < 400 {
		for _, q := range []*inbox.Queue{a, b} {
			for _, lease := range receiveSome(t, q) {
				got[lease.EventID]++
				if err := q.Settle(t.Context(), lease, queue.Done()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for id, n := range got {
		if n != 1 {
			t.Errorf("%s came %d times", id, n)
		}
	}
}
