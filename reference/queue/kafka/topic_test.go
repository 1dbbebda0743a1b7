package kafka_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"floodproof/reference/queue"
	"floodproof/reference/queue/kafka"
	"floodproof/reference/queue/kafka/mark"
)

// TestForeignTopic: a topic that forgets, or has several orders, is refused.
func TestForeignTopic(t *testing.T) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for name, test := range map[string]struct {
		partitions int32
		retention  string
	}{
		"forgets":    {1, "604800000"},
		"partitions": {3, "-1"},
	} {
		settings := map[string]*string{"retention.ms": kadm.StringPtr(test.retention), "retention.bytes": kadm.StringPtr("-1")}
		space := namespace()
		if _, err := admin.CreateTopic(t.Context(), test.partitions, 1, settings, "floodproof."+space); err != nil {
			t.Fatal(err)
		}
		if q, err := kafka.Open(t.Context(), kafka.Options{Brokers: address(t), Namespace: space}); err == nil {
			t.Errorf("%s: got no error", name)
			_ = q.Close(t.Context())
		}
	}
}

// TestClaims: what is claimed of a broker depends on how it keeps records.
func TestClaims(t *testing.T) {
	for storage, want := range map[string]queue.Durability{"sync": queue.DurabilityProcess, "nosync": queue.DurabilityProcess, "memory": queue.DurabilityNone} {
		s := private(t, map[string]string{"storage": storage})
		c := open(t, kafka.Options{Brokers: s.Address()}).Claims()
		if c.Durability != want || c.Settings["storage"] != storage || c.Version != mark.Version() || c.DedupWindow != queue.Forever {
			t.Errorf("%s: got %+v, want %s", storage, c, want)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, opts := range map[string]kafka.Options{
		"namespace":      {Namespace: "a b"},
		"negative lease": {Lease: -1},
	} {
		if _, err := kafka.Open(t.Context(), opts); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
