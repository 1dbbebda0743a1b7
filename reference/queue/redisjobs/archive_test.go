package redisjobs_test

import (
	"fmt"
	"testing"
	"time"

	"floodproof/reference/queue"
)

// TestArchiveForgetsNothing: asynq's archive keeps ten thousand tasks and trims what is older without a word (maxArchiveSize in
// https://github.com/hibiken/asynq/blob/v0.26.0/internal/rdb/rdb.go, read December 2026), and a task whose worker died once too often goes there
// (https://github.com/hibiken/asynq/issues/1015). Our dead letters are in the store, all of them, and none is in the archive.
func TestArchiveForgetsNothing(t *testing.T) {
	t.Parallel()
	const letters, batch = 10_100, 505
	opts := onShared(t)
	opts.Lease = time.Minute
	q := open(t, opts)
	for from := 0; from < letters; from += batch {
		jobs := make([]queue.Job, batch)
		for i := range jobs {
			jobs[i] = job(fmt.Sprintf("dead-%05d", from+i))
			jobs[i].DeadOnArrival = "malformed"
		}
		if err := q.Enqueue(t.Context(), jobs...); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
	enqueue(t, q, "hopeless")
	var hopeless []queue.Lease
	for len(hopeless) == 0 {
		hopeless = receiveSome(t, q)
	}
	if err := q.Settle(t.Context(), hopeless[0], queue.Dead("no hope")); err != nil {
		t.Fatal(err)
	}
	for { // until all of it has come through Redis
		d, err := q.Depth(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d.Waiting == 0 {
			break
		}
	}
	seen := make(map[string]bool)
	if err := q.DeadLetters(t.Context(), func(l queue.DeadLetter) error { seen[l.EventID] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(seen) != letters+1 || !seen["hopeless"] || !seen["dead-00000"] {
		t.Errorf("%d dead letters are listed, the first: %t, the last: %t; want %d", len(seen), seen["dead-00000"], seen["hopeless"], letters+1)
	}
	info, err := inspector(t, opts.Address).GetQueueInfo(opts.Namespace)
	if err != nil || info.Archived != 0 || info.Retry != 0 {
		t.Errorf("asynq's queue: got %+v, %v, want nothing archived and nothing to retry", info, err)
	}
}
