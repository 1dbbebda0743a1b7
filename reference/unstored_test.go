package reference

import (
	"context"
	"errors"
	"strings"
	"testing"

	"floodproof/reference/queue"
)

// TestReceiverBrokenItemIsNotStored: the broken item of a batch is a dead letter from the beginning, and one that could not be stored is nowhere. Answering success all the same would lose it
// (https://github.com/KanishJebaMathewM/Truxify/issues/6069), and to store the whole items alone, and then to refuse, would make the provider's next attempt a batch of known events
// and one that is forgotten. So all of a batch is one Enqueue, and when it fails the next attempt stores everything.
func TestReceiverBrokenItemIsNotStored(t *testing.T) {
	const broken = `{"subscriptionType":"contact.creation","objectId":5}`
	body := "[" + strings.Join([]string{hubspotGood, broken}, ",") + "]"
	var calls [][]queue.Job
	full := true
	rc := newTestReceiver(t, &fakeQueue{enqueue: func(_ context.Context, jobs []queue.Job) error {
		calls = append(calls, jobs)
		if full {
			return errors.New("disk full")
		}
		return nil
	}}, nil)
	if w := send(rc, sign("hubspot", body).request()); w.Code != 503 {
		t.Errorf("a batch that was not stored: got %d, want 503", w.Code)
	}
	full = false
	if w := send(rc, sign("hubspot", body).request()); w.Code != 200 {
		t.Errorf("the same batch when there is room again: got %d, want 200", w.Code)
	}
	if len(calls) != 2 {
		t.Fatalf("%d calls of Enqueue for two attempts of a batch, want one for each", len(calls))
	}
	for i, jobs := range calls {
		if len(jobs) != 2 || jobs[0].DeadOnArrival != "" || jobs[1].DeadOnArrival == "" {
			t.Errorf("attempt %d stores %d jobs, want the whole one and the broken one", i+1, len(jobs))
		}
	}
}
