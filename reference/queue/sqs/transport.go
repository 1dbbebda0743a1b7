package sqs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"floodproof/reference/queue/bundle"
	"floodproof/reference/queue/inbox"
)

const (
	// maxEntries is the most of one request, and of one Receive.
	maxEntries = 10
	// maxRequest is the largest message and the largest request, in bytes (quotas-messages.html, see doc.go).
	maxRequest = 1 << 20
	// The body must not be empty, and counts, as do the attribute's name and type.
	bodyText, bytesName, bytesType = "floodproof", "b", "Binary"

	overhead = len(bodyText) + len(bytesName) + len(bytesType)
	// parallel is how many requests of one call are under way at once.
	parallel = 8
	// attempts is how often an entry is sent that fails by the service's fault, pause the first wait between two.
	attempts = 3
	pause    = 50 * time.Millisecond
	// patience is how long a Receive waits at the service: the longest that there is costs the least.
	patience = 20 * time.Second
)

// Transport carries messages over one queue of SQS. It implements inbox.Transport, inbox.Describer and inbox.Waiter.
type Transport struct {
	opts   Options
	client *sqs.Client
	wire   *http.Transport
	url    string
	limit  int                  // of one message, all that counts included
	shelf  bundle.Shelf[string] // by receipt handle

	closing context.Context
	close   context.CancelFunc
}

// Publish implements inbox.Transport.
func (t *Transport) Publish(ctx context.Context, messages [][]byte) error {
	requests := t.requests(bundle.Pack(messages, t.limit-overhead))
	var all errgroup.Group
	all.SetLimit(parallel)
	for _, entries := range requests {
		all.Go(func() error { return t.send(ctx, entries) })
	}
	return all.Wait()
}

// requests puts bundles into as few requests as their limits allow.
func (t *Transport) requests(bundles [][]byte) [][]types.SendMessageBatchRequestEntry {
	var requests [][]types.SendMessageBatchRequestEntry
	size := maxRequest
	for _, b := range bundles {
		n := len(requests) - 1
		if n < 0 || size+len(b)+overhead > maxRequest || len(requests[n]) == maxEntries {
			requests, size = append(requests, nil), 0
			n++
		}
		size += len(b) + overhead
		requests[n] = append(requests[n], t.entry(strconv.Itoa(len(requests[n])), b))
	}
	return requests
}

// entry is a bundle as the service takes it.
func (t *Transport) entry(id string, b []byte) types.SendMessageBatchRequestEntry {
	e := types.SendMessageBatchRequestEntry{
		Id: aws.String(id), MessageBody: aws.String(bodyText),
		MessageAttributes: map[string]types.MessageAttributeValue{bytesName: {DataType: aws.String(bytesType), BinaryValue: b}},
	}
	if t.opts.FIFO {
		hash := sha256.Sum256(b)
		e.MessageDeduplicationId = aws.String(hex.EncodeToString(hash[:]))
		e.MessageGroupId = aws.String(fmt.Sprintf("group-%03d", int(hash[0])%t.opts.Groups))
	}
	return e
}

// send sends one request until all of it is taken.
func (t *Transport) send(ctx context.Context, entries []types.SendMessageBatchRequestEntry) error {
	return again(ctx, entries, func(left []types.SendMessageBatchRequestEntry) ([]types.BatchResultErrorEntry, error) {
		out, err := t.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &t.url, Entries: left})
		if err != nil {
			return nil, fmt.Errorf("send %d messages: %w", len(left), err)
		}
		if len(out.Successful)+len(out.Failed) != len(left) {
			return nil, fmt.Errorf("send %d messages: the service speaks of %d", len(left), len(out.Successful)+len(out.Failed))
		}
		return out.Failed, nil
	}, func(e types.SendMessageBatchRequestEntry) string { return aws.ToString(e.Id) })
}

// again does a batch, and again what failed in it by the service's fault. An error means that not all of it was done.
func again[E any](ctx context.Context, entries []E, do func([]E) ([]types.BatchResultErrorEntry, error), id func(E) string) error {
	for attempt := 1; ; attempt++ {
		failed, err := do(entries)
		if err != nil || len(failed) == 0 {
			return err
		}
		var errs []error
		ours := false
		for _, f := range failed {
			ours = ours || f.SenderFault
			errs = append(errs, fmt.Errorf("entry %s: %s: %s", aws.ToString(f.Id), aws.ToString(f.Code), aws.ToString(f.Message)))
		}
		if ours || attempt == attempts {
			return fmt.Errorf("%d of %d messages failed: %w", len(failed), len(entries), errors.Join(errs...))
		}
		timer := time.NewTimer(pause << attempt)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		entries = slices.DeleteFunc(slices.Clone(entries), func(e E) bool {
			return !slices.ContainsFunc(failed, func(f types.BatchResultErrorEntry) bool { return aws.ToString(f.Id) == id(e) })
		})
	}
}

// Fetch implements inbox.Transport.
func (t *Transport) Fetch(ctx context.Context, limit int) ([]inbox.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(t.closing, cancel)
	defer stop()
	for {
		if got := t.shelf.Take(limit); len(got) > 0 {
			return got, nil
		}
		n, err := t.receive(ctx, patience)
		if err != nil {
			return nil, fmt.Errorf("receive: %w", err)
		}
		if n == maxEntries && limit > maxEntries {
			t.receiveMore(ctx, limit/maxEntries)
		}
		if err := ctx.Err(); err != nil && n == 0 {
			return nil, err
		}
	}
}

// receive takes what is there, and waits for something.
func (t *Transport) receive(ctx context.Context, wait time.Duration) (int, error) {
	out, err := t.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &t.url, MaxNumberOfMessages: maxEntries, WaitTimeSeconds: int32(wait / time.Second),
		VisibilityTimeout: int32(t.opts.Visibility / time.Second), MessageAttributeNames: []string{bytesName},
	})
	if err != nil {
		return 0, err
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		body := m.MessageAttributes[bytesName].BinaryValue
		if body == nil {
			body = []byte(aws.ToString(m.Body)) // somebody else's
		}
		t.shelf.Put(body, aws.ToString(m.ReceiptHandle))
	}
	return len(out.Messages), nil
}

// receiveMore takes more where there was plenty. What fails comes again.
func (t *Transport) receiveMore(ctx context.Context, times int) {
	var all errgroup.Group
	for range min(times, parallel) {
		all.Go(func() error {
			_, err := t.receive(ctx, 0)
			return err
		})
	}
	_ = all.Wait()
}

// Ack implements inbox.Transport.
func (t *Transport) Ack(ctx context.Context, messages []inbox.Message) error {
	var all errgroup.Group
	all.SetLimit(parallel)
	for handles := range slices.Chunk(t.shelf.Done(messages), maxEntries) {
		all.Go(func() error { return t.remove(ctx, handles) })
	}
	return all.Wait()
}

func (t *Transport) remove(ctx context.Context, handles []string) error {
	var entries []types.DeleteMessageBatchRequestEntry
	for i := range handles {
		entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &handles[i]})
	}
	return again(ctx, entries, func(left []types.DeleteMessageBatchRequestEntry) ([]types.BatchResultErrorEntry, error) {
		out, err := t.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &t.url, Entries: left})
		if err != nil {
			return nil, fmt.Errorf("delete %d messages: %w", len(left), err)
		}
		return out.Failed, nil
	}, func(e types.DeleteMessageBatchRequestEntry) string { return aws.ToString(e.Id) })
}

// Close implements inbox.Transport. What was fetched and not deleted comes again when its visibility timeout ends.
func (t *Transport) Close(context.Context) error {
	t.close()
	t.wire.CloseIdleConnections()
	return nil
}

var (
	_ inbox.Transport = (*Transport)(nil)
	_ inbox.Describer = (*Transport)(nil)
	_ inbox.Waiter    = (*Transport)(nil)
)
