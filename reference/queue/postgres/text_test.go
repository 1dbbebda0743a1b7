package postgres_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"floodproof/reference/queue"
	"floodproof/reference/queue/postgres"
)

// FuzzEscape: any text becomes one that the server takes, comes back, and is no other's.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"evt_1", "", "a\x00b", "\xff\xfe", `\`, `\x00`, `\\x00`, "\\\x00", "ü�", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		escaped := postgres.Escape(s)
		if strings.ContainsRune(escaped, 0) || strings.ToValidUTF8(escaped, "") != escaped {
			t.Errorf("Escape(%q) is %q, which the server refuses", s, escaped)
		}
		if got := postgres.Unescape(escaped); got != s { // so that no two become the same
			t.Errorf("Unescape(Escape(%q)): got %q", s, got)
		}
	})
}

// FuzzRoundTrip stores any bytes in every text and in the payload, and wants them back.
func FuzzRoundTrip(f *testing.F) {
	f.Add("stripe", "evt_1", []byte(`{"id":"evt_1"}`))
	f.Add("a\x00b", "\xff\xfe", []byte{})
	f.Add("'; DROP TABLE jobs; --", `{"a",NULL}`, []byte(strings.Repeat("compressible ", 1000)))
	q := open(f, fresh(f))
	var n atomic.Int64 // makes each event a new one
	f.Fuzz(func(t *testing.T, provider, id string, payload []byte) {
		if len(provider)+len(id) > 400 {
			t.Skip("too long for a key, which has a test of its own")
		}
		lane := fmt.Sprint(id, n.Add(1))
		want := queue.Job{Provider: "p" + provider, EventID: lane, DeliveryID: id, Type: provider, Resource: id, Lane: lane, Version: -1,
			Payload: payload, ReceivedAt: time.UnixMicro(1).UTC()}
		if err := q.Enqueue(t.Context(), want); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
		leases, err := q.Receive(t.Context(), lane, 1)
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		if diff := cmp.Diff(want, leases[0].Job, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("job (-want +got):\n%s", diff)
		}
	})
}
