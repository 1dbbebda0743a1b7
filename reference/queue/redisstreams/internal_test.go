package redisstreams

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"floodproof/reference/queue"
)

// TestCommitterShares: whoever waits while a script is under way shares the next one, and who has left is not in it.
func TestCommitterShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		release := make(chan struct{})
		failure := errors.New("of the second batch")
		c := startCommitter(1, func(batch []*operation) {
			<-release
			sizes = append(sizes, len(batch))
			for _, o := range batch {
				if len(sizes) == 2 {
					o.err = failure
				}
			}
		})
		errs := make(chan error, 11)
		call := func(ctx context.Context) { errs <- c.do(ctx, newOperation(nil, 1)) }
		go call(t.Context())
		synctest.Wait() // the first is under way
		for range 9 {
			go call(t.Context())
		}
		leaving, leave := context.WithCancel(t.Context())
		go call(leaving)
		synctest.Wait()
		leave()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller who left: got error %v", err)
		}
		close(release)
		c.close()
		if diff := cmp.Diff([]int{1, 9}, sizes); diff != "" {
			t.Errorf("sizes of the batches (-want +got):\n%s", diff)
		}
		failed := 0
		for range 10 {
			if err := <-errs; errors.Is(err, failure) {
				failed++
			}
		}
		if failed != 9 {
			t.Errorf("%d callers got the error of the second batch, want 9", failed)
		}
	})
}

// TestCommitterBounds: one script stays within its bounds.
func TestCommitterBounds(t *testing.T) {
	for _, tt := range []struct {
		name         string
		bytes, calls int
		want         []int
	}{
		{"many", 1, maxBatchOps + 10, []int{maxBatchOps, 10}},
		{"large", maxBatchBytes / 2, 5, []int{2, 2, 1}},
		{"huge", maxBatchBytes * 2, 2, []int{1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sizes []int
			c := &committer{ops: make(chan *operation, 1000), send: func(batch []*operation) { sizes = append(sizes, len(batch)) }}
			for range tt.calls {
				c.ops <- newOperation(nil, tt.bytes)
			}
			close(c.ops)
			c.run()
			if diff := cmp.Diff(tt.want, sizes); diff != "" {
				t.Errorf("sizes of the batches (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCommitterAnswersEach of many callers on two goroutines: each gets its own answer.
func TestCommitterAnswersEach(t *testing.T) {
	c := startCommitter(2, func(batch []*operation) {
		for _, o := range batch {
			o.valid = o.args[0].(int)%2 == 0
		}
	})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			o := newOperation([]any{i}, 1)
			if err := c.do(t.Context(), o); err != nil || o.valid != (i%2 == 0) {
				t.Errorf("call %d: got %v, error %v", i, o.valid, err)
			}
		})
	}
	wg.Wait()
	c.close()
}

// TestInstant: the server's clock is believed where it agrees with ours, and otherwise the lease begins when it was asked for.
func TestInstant(t *testing.T) {
	sent := time.UnixMilli(1_790_000_000_500).Add(300 * time.Microsecond)
	answered := sent.Add(20 * time.Millisecond)
	for _, tt := range []struct {
		name   string
		server time.Time
		want   time.Time
	}{
		{"between", sent.Add(10 * time.Millisecond), sent.Add(10 * time.Millisecond).Truncate(time.Millisecond)},
		{"the same millisecond", sent, sent.Truncate(time.Millisecond)},
		{"ahead", sent.Add(30 * time.Second), sent},
		{"behind", sent.Add(-30 * time.Second), sent},
	} {
		us := tt.server.UnixMicro()
		got, err := instant(sent, answered, strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10))
		if err != nil || !got.Equal(tt.want) {
			t.Errorf("%s: got %v, error %v; want %v", tt.name, got, err, tt.want)
		}
	}
	if _, err := instant(sent, answered, "soon", "0"); err == nil {
		t.Error("a time that is no number: got no error")
	}
}

// FuzzRecord packs any job and wants it back.
func FuzzRecord(f *testing.F) {
	f.Add("stripe", "evt_1", "", []byte(`{"id":"evt_1"}`), int64(1))
	f.Add("a:b", "\xff:\x00", "orders", []byte{}, int64(-1))
	f.Add("", "", "l", bytes.Repeat([]byte("compressible "), 1000), int64(1<<62))
	f.Fuzz(func(t *testing.T, provider, id, lane string, payload []byte, n int64) {
		want := queue.Job{Provider: provider, EventID: id, Lane: lane, DeliveryID: id, Type: lane, Resource: provider, Version: n, Payload: payload, ReceivedAt: time.UnixMicro(n).UTC()}
		if n%2 == 0 {
			want.Debounce = queue.Debounce{Quiet: time.Duration(n), MaxWait: time.Duration(n - 1), Edge: queue.Both}
		}
		got, err := decode(ref(provider, id), string(encode(&want)))
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("job (-want +got):\n%s", diff)
		}
	})
}

// FuzzDecode reads anything. It must not panic, and must call what it cannot read damaged.
func FuzzDecode(f *testing.F) {
	j := queue.Job{Provider: "stripe", EventID: "evt_1", Payload: bytes.Repeat([]byte("x"), 100)}
	whole := string(encode(&j))
	for cut := range len(whole) {
		f.Add(ref("stripe", "evt_1"), whole[:cut])
	}
	f.Add("9:short:x", whole)
	f.Add("-1::", "\x01\x00")
	f.Add("no colon", "")
	f.Fuzz(func(t *testing.T, name, record string) {
		if _, err := decode(name, record); err != nil && !errors.Is(err, errDamaged) {
			t.Errorf("decode: got error %v, want %v", err, errDamaged)
		}
	})
}
