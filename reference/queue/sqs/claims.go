package sqs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"floodproof/reference/queue"
	"floodproof/reference/queue/bundle"
	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/sqs/child"
)

// retention is the longest that there is.
const retention = 14 * 24 * time.Hour

// prepare finds the queue, or makes it, and refuses one that loses messages.
func (t *Transport) prepare(ctx context.Context) error {
	name := t.opts.queueName()
	var missing *types.QueueDoesNotExist
	found, err := t.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	switch {
	case err == nil:
		t.url = aws.ToString(found.QueueUrl)
	case errors.As(err, &missing):
		made, err := t.client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: t.attributes()})
		if err != nil {
			return fmt.Errorf("make the queue %s: %w", name, err)
		}
		t.url = aws.ToString(made.QueueUrl)
	default:
		return fmt.Errorf("find the queue %s: %w", name, err)
	}
	settings, err := t.ask(ctx)
	if err != nil {
		return err
	}
	t.limit = maxRequest
	if n, err := strconv.Atoi(settings["MaximumMessageSize"]); err == nil { // queues that are older than the limit keep their own
		t.limit = min(t.limit, n)
	}
	return refuse(name, settings)
}

// attributes are those of a queue that is made.
func (t *Transport) attributes() map[string]string {
	attributes := map[string]string{
		"MessageRetentionPeriod": strconv.Itoa(int(retention / time.Second)),
		"VisibilityTimeout":      strconv.Itoa(int(t.opts.Visibility / time.Second)),
		"MaximumMessageSize":     strconv.Itoa(maxRequest),
	}
	if t.opts.FIFO {
		maps.Copy(attributes, map[string]string{"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"})
	}
	return attributes
}

// refuse says why a queue must not be used.
func refuse(name string, settings map[string]string) error {
	if policy := settings["RedrivePolicy"]; policy != "" {
		return fmt.Errorf("the queue %s has a RedrivePolicy, which takes away what was received too often: dead letters are kept by the store; remove the policy", name)
	}
	if seconds, err := strconv.Atoi(settings["MessageRetentionPeriod"]); err != nil || time.Duration(seconds)*time.Second < retention {
		return fmt.Errorf("the queue %s forgets messages after %s seconds, silently: set MessageRetentionPeriod to %d", name, settings["MessageRetentionPeriod"], int(retention/time.Second))
	}
	return nil
}

// ask is all that the service tells of the queue.
func (t *Transport) ask(ctx context.Context) (map[string]string, error) {
	out, err := t.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &t.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return nil, fmt.Errorf("ask for the attributes of the queue: %w", err)
	}
	return out.Attributes, nil
}

// Promise implements inbox.Describer.
func (t *Transport) Promise(ctx context.Context) (inbox.Promise, error) {
	all, err := t.ask(ctx)
	if err != nil {
		return inbox.Promise{}, err
	}
	settings := make(map[string]string)
	for _, name := range []string{"MessageRetentionPeriod", "VisibilityTimeout", "MaximumMessageSize", "FifoQueue", "DeduplicationScope", "FifoThroughputLimit", child.Emulator, child.Storage} {
		if value, ok := all[name]; ok {
			settings[name] = value
		}
	}
	p := inbox.Promise{MaxMessage: t.limit - overhead - bundle.Overhead, Settings: settings, Version: "SQS of an unknown server", Durability: queue.DurabilityNone}
	switch {
	case t.opts.amazon() != "":
		p.Version, p.Durability = "Amazon SQS", queue.DurabilityFailover
		settings["region"] = t.opts.amazon()
	case all[child.Emulator] != "":
		p.Version, p.Durability = all[child.Emulator], emulated(all[child.Storage])
	}
	return p, nil
}

// emulated is what the emulator's way to keep messages survives.
func emulated(storage string) queue.Durability {
	switch storage {
	case child.StorageSync:
		return queue.DurabilityPower
	case child.StorageNosync, child.StorageMemory:
		return queue.DurabilityProcess
	}
	return queue.DurabilityNone
}

// Waiting implements inbox.Waiter: messages of SQS, of which each may hold several of the inbox.
func (t *Transport) Waiting(ctx context.Context) (int64, error) {
	all, err := t.ask(ctx)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
		n, err := strconv.ParseInt(all[name], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", name, err)
		}
		sum += n
	}
	return sum, nil
}
