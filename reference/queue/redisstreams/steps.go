package redisstreams

import (
	"context"
	"fmt"
	"slices"

	"floodproof/reference/queue"
)

// Steps implements queue.Stepper. They are in the order of their names.
func (q *Queue) Steps(ctx context.Context, lease queue.Lease) ([]string, error) {
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.calls.Done()
	steps, err := q.client.SMembers(ctx, q.prefix+"steps:"+ref(lease.Provider, lease.EventID)).Result()
	if err != nil {
		return nil, fmt.Errorf("read the steps of event %q of %s: %w", lease.EventID, lease.Provider, err)
	}
	slices.Sort(steps)
	return steps, nil
}

// Finish implements queue.Stepper. The steps of a job go with it when it is done, or after the retention; those of a dead letter stay, for when it is redriven.
func (q *Queue) Finish(ctx context.Context, lease queue.Lease, step string) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	return q.underLease(ctx, lease, change{verb: "finish", name: "finish a step of", text: step})
}
