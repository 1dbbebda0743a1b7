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

// Redrive makes a dead letter due again; its attempts go on counting. An event that is unknown or not dead is an error, and so is one of a debounced row of which a
// newer version was there since: it would undo that.
func (q *Queue) Redrive(ctx context.Context, provider, eventID string) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	answer, err := q.run(ctx, q.scripts.redrive, ref(provider, eventID))
	switch {
	case err != nil:
	case answer == int64(-1):
		err = errors.New("a newer version of its resource was there since")
	case answer != int64(1):
		err = errors.New("there is no such dead letter")
	}
	if err != nil {
		return fmt.Errorf("redrive event %q of %s: %w", eventID, provider, err)
	}
	return nil
}
