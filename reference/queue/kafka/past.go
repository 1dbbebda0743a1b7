package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"floodproof/reference/queue"
	"floodproof/reference/queue/memory/state"
)

// errElsewhere: at some place in the log stands something else than it did.
var errElsewhere = errors.New("the log lost it, or is another one")

// lookUp finds an event, and its payload in the log if it is finished.
func (e *engine) lookUp(ctx context.Context, c *state.Command) (state.Result, error) {
	r, err := e.write(ctx, c)
	if err != nil || r.Place == 0 {
		return r, err
	}
	r.Events[0].Payload, err = e.payload(ctx, r.Place, c)
	return r, err
}

// replay replays an event. One that is finished needs its payload again, which is asked for, found in the log, and comes with a second command, unless the event has become another one
// in between.
func (e *engine) replay(ctx context.Context, c *state.Command) (state.Result, error) {
	with := *c
	for {
		r, err := e.write(ctx, &with)
		if err != nil || r.Place == 0 {
			return r, err
		}
		payload, err := e.payload(ctx, r.Place, c)
		if err != nil {
			return state.Result{}, err
		}
		with.ID, with.Jobs = r.Next, []queue.Job{{Payload: payload}}
	}
}

// payload reads that of the event that a command names from where it came.
func (e *engine) payload(ctx context.Context, place int64, c *state.Command) ([]byte, error) {
	offset, number := fromPlace(place)
	f, err := e.frameAt(ctx, offset)
	if err == nil && number < len(f.commands) {
		for _, j := range f.commands[number].Jobs {
			if j.Provider == c.Name && j.EventID == c.EventID {
				return j.Payload, nil
			}
		}
	}
	if err == nil {
		err = errElsewhere
	}
	return nil, fmt.Errorf("read the payload at offset %d of the log: %w", offset, err)
}

// frameAt reads one record.
func (e *engine) frameAt(ctx context.Context, offset int64) (frame, error) {
	at := map[string]map[int32]kgo.Offset{e.topic: {0: kgo.NewOffset().At(offset)}}
	reader, err := kgo.NewClient(append(e.options[:len(e.options):len(e.options)], kgo.ConsumePartitions(at), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxPartitionBytes(1))...) // one record comes, however large
	if err != nil {
		return frame{}, err
	}
	defer reader.Close()
	for {
		fetches := reader.PollRecords(ctx, 1)
		if err := ctx.Err(); err != nil {
			return frame{}, err
		}
		for _, failed := range fetches.Errors() {
			if final(failed.Err) {
				return frame{}, failed.Err
			}
		}
		for _, record := range fetches.Records() {
			if record.Offset != offset {
				return frame{}, errElsewhere
			}
			return readFrame(record.Value)
		}
	}
}
