package redisstreams

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"floodproof/reference/queue"
)

// Depth implements queue.Depther. A lease that lapsed counts as waiting, since it lapsed.
func (q *Queue) Depth(ctx context.Context) (queue.Depth, error) {
	if err := q.begin(); err != nil {
		return queue.Depth{}, err
	}
	defer q.calls.Done()
	answer, err := q.run(ctx, q.scripts.depth)
	if err != nil {
		return queue.Depth{}, fmt.Errorf("ask for the depth: %w", err)
	}
	rows, err := array(answer, 0)
	if err != nil {
		return queue.Depth{}, fmt.Errorf("ask for the depth: %w", err)
	}
	return sumDepth(rows)
}

// sumDepth makes a Depth of what depth.lua says of each lane.
func sumDepth(rows []any) (queue.Depth, error) {
	var d queue.Depth
	for _, row := range rows {
		columns, err := array(row, 6)
		if err != nil {
			return queue.Depth{}, fmt.Errorf("ask for the depth: %w", err)
		}
		l := queue.LaneDepth{}
		var oldest int64
		l.Lane, _ = columns[0].(string)
		for i, n := range []*int64{&l.Waiting, &l.Leased, &l.Dead, &l.Done, &oldest} {
			if *n, err = integer(columns[i+1]); err != nil {
				return queue.Depth{}, fmt.Errorf("ask for the depth: %w", err)
			}
		}
		l.Oldest = time.Duration(oldest) * time.Millisecond
		d.Waiting += l.Waiting
		d.Leased += l.Leased
		d.Dead += l.Dead
		d.Done += l.Done
		d.Oldest = max(d.Oldest, l.Oldest)
		d.Lanes = append(d.Lanes, l)
	}
	slices.SortFunc(d.Lanes, func(a, b queue.LaneDepth) int { return cmp.Compare(a.Lane, b.Lane) })
	return d, nil
}
