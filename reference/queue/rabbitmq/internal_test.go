package rabbitmq

import (
	"slices"
	"testing"

	"floodproof/reference/queue"
)

func TestDurability(t *testing.T) {
	for name, test := range map[string]struct {
		server server
		want   queue.Durability
	}{
		"this one":       {server{"RabbitMQ", "3.10.8"}, queue.DurabilityPower},
		"a new one":      {server{"RabbitMQ", "4.1.0"}, queue.DurabilityPower},
		"the first":      {server{"RabbitMQ", "3.8.0"}, queue.DurabilityPower},
		"before quorum":  {server{"RabbitMQ", "3.7.28"}, queue.DurabilityProcess},
		"another's":      {server{"LavinMQ", "4.0.0"}, queue.DurabilityProcess},
		"without number": {server{"RabbitMQ", "git"}, queue.DurabilityProcess},
	} {
		if got := durability(test.server); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestDeliveryLimit: since 4.0 a limit is the default, and before that the word for none is refused.
func TestDeliveryLimit(t *testing.T) {
	for version, want := range map[string]any{"3.10.8": nil, "3.13.7": nil, "4.0.2": -1, "4.2.0": -1} {
		if got := quorum(server{"RabbitMQ", version})["x-delivery-limit"]; got != want {
			t.Errorf("%s: declared with the limit %v, want %v", version, got, want)
		}
	}
}

func TestSettle(t *testing.T) {
	c := &consuming{low: 1, acked: make(map[uint64]bool), out: 100}
	for _, step := range []struct {
		tags   []uint64
		row    uint64
		others []uint64
	}{
		{[]uint64{1, 2, 3}, 3, nil},
		{[]uint64{6, 7}, 0, []uint64{6, 7}},
		{[]uint64{7, 8}, 0, []uint64{8}},      // 7 is known
		{[]uint64{4, 5, 10}, 5, []uint64{10}}, // 6 to 8 were said before
		{[]uint64{3, 4, 8}, 0, nil},           // all known
		{[]uint64{9, 11, 12, 14}, 12, []uint64{14}},
	} {
		row, others := c.settle(step.tags)
		if row != step.row || !slices.Equal(others, step.others) {
			t.Errorf("%v: got a row to %d and %v, want %d and %v", step.tags, row, others, step.row, step.others)
		}
	}
	if c.low != 13 || c.out != 100-13 {
		t.Errorf("at the end: all below %d, %d out; want 13 and 87", c.low, c.out)
	}
}
