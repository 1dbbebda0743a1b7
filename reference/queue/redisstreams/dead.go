package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"floodproof/reference/queue"
)

// DeadLetters implements queue.DeadLister. It reads page by page: letters that come or are redriven meanwhile may or may not be among them. One whose event was
// deleted by hand is listed all the same, without its payload.
func (q *Queue) DeadLetters(ctx context.Context, fn func(queue.DeadLetter) error) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	for from := "-"; ; {
		answer, err := q.run(ctx, q.scripts.letters, from, maxClaimBytes)
		if err != nil {
			return fmt.Errorf("list the dead letters: %w", err)
		}
		page, err := array(answer, 0)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, entry := range page {
			id, letter, err := unpackLetter(entry)
			if err != nil {
				return fmt.Errorf("list the dead letters: %w", err)
			}
			if err := fn(letter); err != nil {
				return err
			}
			from = "(" + id
		}
	}
}

func unpackLetter(entry any) (id string, letter queue.DeadLetter, err error) {
	parts, err := array(entry, 5)
	if err != nil {
		return "", letter, err
	}
	id, _ = parts[0].(string)
	name, _ := parts[1].(string)
	letter.Reason, _ = parts[2].(string)
	attempts, _ := parts[3].(int64)
	record, _ := parts[4].(string)
	letter.Attempts = int(attempts)
	ms, _, _ := strings.Cut(id, "-")
	at, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return "", letter, unexpected(entry)
	}
	letter.At = time.UnixMilli(at).UTC()
	letter.Job, err = decode(name, record)
	if errors.Is(err, errDamaged) {
		err = nil // somebody has to see it all the same
	}
	if letter.Attempts == 0 {
		letter.DeadOnArrival = letter.Reason
	}
	return id, letter, err
}

// Redrive implements queue.Redriver.
func (q *Queue) Redrive(ctx context.Context, provider, eventID string) error {
	return q.act("redrive", provider, eventID, queue.ErrNotDead, func(ref string) (any, error) { return q.run(ctx, q.scripts.redrive, ref) })
}

// Drop implements queue.Dropper.
func (q *Queue) Drop(ctx context.Context, provider, eventID string) error {
	return q.act("drop", provider, eventID, queue.ErrNotDead, func(ref string) (any, error) { return q.run(ctx, q.scripts.drop, ref) })
}

// Replay implements queue.Replayer. What is finished can be replayed for as long as Options.Retention keeps it; after that it is unknown. A pending event of a debounced row stays
// until its window ends.
func (q *Queue) Replay(ctx context.Context, provider, eventID string, forgetSteps bool) error {
	forget := 0
	if forgetSteps {
		forget = 1
	}
	return q.act("replay", provider, eventID, queue.ErrUnknownEvent, func(ref string) (any, error) { return q.run(ctx, q.scripts.replay, ref, forget) })
}

// act does something with an event, by a script that answers 1, or 0 when there is no such one.
func (q *Queue) act(verb, provider, eventID string, none error, run func(ref string) (any, error)) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	answer, err := run(ref(provider, eventID))
	switch {
	case err != nil:
	case answer == int64(-1):
		err = queue.ErrSuperseded
	case answer == int64(-2):
		err = queue.ErrInProgress
	case answer != int64(1):
		err = none
	}
	if err != nil {
		return fmt.Errorf("%s event %q of %s: %w", verb, eventID, provider, err)
	}
	return nil
}

var (
	_ queue.Redriver = (*Queue)(nil)
	_ queue.Dropper  = (*Queue)(nil)
	_ queue.Replayer = (*Queue)(nil)
)
