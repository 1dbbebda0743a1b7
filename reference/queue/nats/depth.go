package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"floodproof/reference/queue"
)

// page is how many messages one question asks for.
const page = 256

// walk calls fn for the messages of a pattern, in their order.
func (q *Queue) walk(ctx context.Context, pattern string, fn func([]stored) error) error {
	for from, more := uint64(1), true; more; {
		var messages []stored
		var err error
		messages, more, err = q.link.get(ctx, read{Seq: from, NextFor: pattern, Batch: page, MaxBytes: maxPullBytes})
		if err != nil || len(messages) == 0 {
			return err
		}
		if err := fn(messages); err != nil {
			return err
		}
		from = messages[len(messages)-1].seq + 1
	}
	return nil
}

// Depth implements queue.Depther. The counts are exact. Oldest looks at the jobs that no receiver was given yet; one whose lease, delay or window ended counts as waiting
// from that moment, but is not seen by Oldest before it stands in line again.
func (q *Queue) Depth(ctx context.Context) (queue.Depth, error) {
	if err := q.begin(); err != nil {
		return queue.Depth{}, err
	}
	defer q.calls.Done()
	d, err := q.depth(ctx)
	if err != nil {
		return queue.Depth{}, fmt.Errorf("read the depth: %w", err)
	}
	return d, nil
}

func (q *Queue) depth(ctx context.Context) (queue.Depth, error) {
	sum, err := q.tallies(ctx)
	if err != nil {
		return queue.Depth{}, err
	}
	d := sum.depth(q.clock.now())
	for i := range d.Lanes {
		if d.Lanes[i].Waiting == 0 {
			continue
		}
		if d.Lanes[i].Oldest, err = q.oldest(ctx, q.lane(d.Lanes[i].Lane)); err != nil {
			return queue.Depth{}, err
		}
		d.Oldest = max(d.Oldest, d.Lanes[i].Oldest)
	}
	return d, nil
}

// letters are those that rand.Text uses.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

// tallies sums up what all writers have done. A server gives 1024 answers to one question; where there were more writers, they are asked for by their first letters.
func (q *Queue) tallies(ctx context.Context) (tally, error) {
	found, err := q.link.last(ctx, []string{q.subjects.allCounts("*")})
	if errors.Is(err, errTooMany) {
		found, err = nil, nil
		for _, letter := range letters {
			some, err := q.link.last(ctx, []string{q.subjects.allCounts(string(letter))})
			if err != nil {
				return nil, err
			}
			found = append(found, some...)
		}
	}
	if err != nil {
		return nil, err
	}
	sum := make(tally)
	for _, m := range found {
		if err := sum.add(m.data); err != nil {
			return nil, fmt.Errorf("read %s: %w", m.subject, err)
		}
	}
	return sum, nil
}

// codeConsumerMissing is the answer about a lane of which nobody ever received.
const codeConsumerMissing = 10014

// oldest is the age of the first message of a lane that was not delivered.
func (q *Queue) oldest(ctx context.Context, l *lane) (time.Duration, error) {
	var info struct {
		Delivered struct {
			Stream uint64 `json:"stream_seq"`
		} `json:"delivered"`
		Pending uint64 `json:"num_pending"`
	}
	err := q.link.ask(ctx, "$JS.API.CONSUMER.INFO."+q.link.stream+"."+l.token, struct{}{}, &info)
	if err != nil && !hasCode(err, codeConsumerMissing) {
		return 0, err
	}
	if err == nil && info.Pending == 0 {
		return 0, nil
	}
	messages, _, err := q.link.get(ctx, read{Seq: info.Delivered.Stream + 1, NextFor: l.filter, Batch: 1})
	if err != nil || len(messages) == 0 {
		return 0, err
	}
	return max(micro(q.clock.now()-messages[0].at.UnixMicro()), 0), nil
}

// DeadLetters implements queue.DeadLister. A letter that is added meanwhile is seen too; fn may call the queue.
func (q *Queue) DeadLetters(ctx context.Context, fn func(queue.DeadLetter) error) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	var stop error
	err := q.walk(ctx, q.subjects.dead("*"), func(messages []stored) error {
		for some := range slices.Chunk(messages, letterPage) {
			letters, err := q.letters(ctx, some)
			if err != nil {
				return err
			}
			for _, letter := range letters {
				if stop = fn(letter); stop != nil {
					return stop
				}
			}
		}
		return nil
	})
	if err != nil && stop == nil {
		err = fmt.Errorf("list the dead letters: %w", err)
	}
	return err
}

// letterPage is how many letters are in memory at once, with their payloads.
const letterPage = 32

// letters puts letters and their jobs together. The time is that at which the server stored the letter, by which they are in order.
func (q *Queue) letters(ctx context.Context, messages []stored) ([]queue.DeadLetter, error) {
	var filters []string
	for _, m := range messages {
		if _, hash, _ := q.subjects.split(m.subject); len(m.data) > 0 {
			filters = append(filters, q.subjects.anyJob(hash))
		}
	}
	found, err := q.link.last(ctx, filters)
	if err != nil {
		return nil, err
	}
	jobs := make(map[string]queue.Job, len(found))
	for _, m := range found {
		job, err := decodeJob(m.data)
		if err != nil && !errors.Is(err, errDamaged) { // what is left of a damaged one is shown all the same
			return nil, err
		}
		_, hash, _ := q.subjects.split(m.subject)
		jobs[hash] = job
	}
	var letters []queue.DeadLetter
	for _, m := range messages {
		if len(m.data) == 0 {
			continue // redriven
		}
		s, err := decodeState(m.data, m.seq)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", m.subject, err)
		}
		_, hash, _ := q.subjects.split(m.subject)
		letters = append(letters, queue.DeadLetter{Job: jobs[hash], Reason: s.reason, Attempts: s.attempt, At: m.at})
	}
	return letters, nil
}
