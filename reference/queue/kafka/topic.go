package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"floodproof/reference/queue"
	"floodproof/reference/queue/kafka/mark"
)

// needed are the settings of the topic without which jobs would go: by default a topic forgets what is older than a week
// (https://kafka.apache.org/41/configuration/topic-configs/, read November 2026).
var needed = map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}

// prepare makes the topic if it is missing, looks whether it is as it must be, and derives what can be claimed.
func prepare(ctx context.Context, client *kgo.Client, topic string) (queue.Claims, error) {
	admin := kadm.NewClient(client)
	meta, err := admin.BrokerMetadata(ctx)
	if err != nil {
		return queue.Claims{}, fmt.Errorf("ask the cluster: %w", err)
	}
	kfake, isFake := strings.CutPrefix(meta.Cluster, mark.ClusterPrefix)
	settings := map[string]*string{
		"max.message.bytes": kadm.StringPtr(strconv.Itoa(maxRecord + 1<<20)), "message.timestamp.type": kadm.StringPtr("LogAppendTime"),
	}
	for key, value := range needed {
		settings[key] = kadm.StringPtr(value)
	}
	if !isFake { // which does not know it
		settings["flush.messages"] = kadm.StringPtr("1")
	}
	if _, err := admin.CreateTopic(ctx, 1, -1, settings, topic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return queue.Claims{}, fmt.Errorf("make the topic %s: %w", topic, err)
	}
	found, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return queue.Claims{}, fmt.Errorf("read the settings of the topic %s: %w", topic, err)
	}
	inForce := make(map[string]string)
	for _, resource := range found {
		if resource.Err != nil {
			return queue.Claims{}, fmt.Errorf("read the settings of the topic %s: %w", topic, resource.Err)
		}
		for _, c := range resource.Configs {
			inForce[c.Key] = c.MaybeValue()
		}
	}
	for key, want := range needed {
		if got := inForce[key]; got != want {
			return queue.Claims{}, fmt.Errorf("%w: %s of %s is %q: set it to %s", errTopic, key, topic, got, want)
		}
	}
	replicas, err := replication(ctx, admin, topic)
	if err != nil {
		return queue.Claims{}, err
	}
	c := queue.Claims{DelayAccuracy: delayAccuracy, Debounce: true, MaxPayload: maxPayload}
	c.Settings = map[string]string{"replicas": strconv.Itoa(replicas), "acks": "all"}
	for _, key := range []string{"flush.messages", "min.insync.replicas", "message.timestamp.type", "unclean.leader.election.enable"} {
		if value, ok := inForce[key]; ok {
			c.Settings[key] = value
		}
	}
	if isFake {
		c.Version, c.Durability = mark.Version(), queue.DurabilityProcess
		c.Settings["storage"] = kfake
		c.Settings["message.timestamp.type"] = "CreateTime" // whatever it says
		if kfake == "memory" {
			c.Durability = queue.DurabilityNone
		}
		return c, nil
	}
	c.Version, err = version(ctx, admin)
	c.Durability = durability(replicas, inForce)
	return c, err
}

// durability is what settings of Kafka promise. Without flush.messages Kafka leaves syncing to the system: a record that is acknowledged survives the end of the broker,
// or, on three replicas of which two must have it, the loss of one machine (https://kafka.apache.org/41/design/design/#replication, read November 2026).
func durability(replicas int, settings map[string]string) queue.Durability {
	insync, _ := strconv.Atoi(settings["min.insync.replicas"]) // 0 promises nothing
	switch {
	case replicas >= 3 && insync >= 2 && settings["unclean.leader.election.enable"] == "false":
		return queue.DurabilityFailover
	case settings["flush.messages"] == "1":
		return queue.DurabilityPower
	}
	return queue.DurabilityProcess
}

func replication(ctx context.Context, admin *kadm.Client, topic string) (int, error) {
	meta, err := admin.Metadata(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("ask for the topic %s: %w", topic, err)
	}
	partitions := meta.Topics[topic].Partitions
	if err := meta.Topics[topic].Err; err != nil {
		return 0, fmt.Errorf("ask for the topic %s: %w", topic, err)
	}
	if len(partitions) != 1 {
		return 0, fmt.Errorf("%w: %s has %d partitions: it must have one, whose order is the order of everything", errTopic, topic, len(partitions))
	}
	return len(partitions[0].Replicas), nil
}

// version is that of the cluster as far as its interfaces tell: Kafka does not say.
func version(ctx context.Context, admin *kadm.Client) (string, error) {
	brokers, err := admin.ApiVersions(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for the version: %w", err)
	}
	for _, b := range brokers {
		if b.Err == nil {
			return "Kafka, by its interfaces " + b.VersionGuess(), nil
		}
	}
	return "", errors.New("ask for the version: no broker answers")
}
