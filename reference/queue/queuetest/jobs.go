package queuetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"floodproof/reference/queue"
)

// job makes a job with all fields set, so that a field that a backend forgets shows.
func job(id string) queue.Job {
	return queue.Job{
		Provider:   "stripe",
		EventID:    id,
		DeliveryID: "delivery of " + id,
		Type:       "invoice.paid",
		Resource:   "in_" + id,
		Version:    7,
		Payload:    []byte(`{"id":"` + id + `","object":"event","text":"grüße"}`),
		ReceivedAt: time.Date(2026, 11, 30, 6, 0, 0, 123_000_000, time.UTC),
	}
}

func jobsNamed(prefix string, n int) []queue.Job {
	jobs := make([]queue.Job, n)
	for i := range jobs {
		jobs[i] = job(fmt.Sprintf("%s-%04d", prefix, i))
	}
	return jobs
}

// noise is a payload that no compression makes smaller and that holds every byte.
func noise(size int) []byte {
	random := rand.New(rand.NewPCG(uint64(size), 1))
	payload := make([]byte, size)
	for i := range payload {
		payload[i] = byte(random.Uint32())
	}
	return payload
}

// wantJob asserts that a job came back as it was. Times need only be right to the millisecond.
func (s *suite) wantJob(got, want queue.Job) {
	s.Helper()
	if !bytes.Equal(got.Payload, want.Payload) {
		s.Fatalf("job %s: the payload changed on its way, %d bytes became %d other ones", want.EventID, len(want.Payload), len(got.Payload))
	}
	got.Payload, want.Payload = nil, nil
	if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(time.Millisecond)); diff != "" {
		s.Fatalf("job %s changed on its way (-want +got):\n%s", want.EventID, diff)
	}
}

// wantLease asserts what holds for every lease.
func (s *suite) wantLease(lease queue.Lease, attempt int) {
	s.Helper()
	if lease.Attempt != attempt {
		s.Fatalf("lease of %s: got attempt %d, want %d", lease.EventID, lease.Attempt, attempt)
	}
	if lease.Deadline.IsZero() {
		s.Fatalf("lease of %s has no deadline", lease.EventID)
	}
}

// eventIDs counts how often each event is among leases.
func eventIDs(leases []queue.Lease) map[string]int {
	ids := make(map[string]int, len(leases))
	for _, l := range leases {
		ids[l.EventID]++
	}
	return ids
}

// wantOnceEach asserts that leases are exactly these jobs, each once.
func (s *suite) wantOnceEach(leases []queue.Lease, jobs []queue.Job) {
	s.Helper()
	want := make(map[string]int, len(jobs))
	for _, j := range jobs {
		want[j.EventID] = 1
	}
	if diff := cmp.Diff(want, eventIDs(leases)); diff != "" {
		s.Fatalf("leases per event (-want +got):\n%s", diff)
	}
}
