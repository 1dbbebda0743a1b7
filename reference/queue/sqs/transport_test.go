package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/server"
	"floodproof/reference/queue/sqs"
)

// connect opens a transport that is closed with the test.
func connect(t testing.TB, opts sqs.Options) *sqs.Transport {
	t.Helper()
	tr, err := sqs.Connect(t.Context(), opts)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() {
		if err := tr.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return tr
}

func promise(t testing.TB, tr *sqs.Transport) inbox.Promise {
	t.Helper()
	p, err := tr.Promise(t.Context())
	if err != nil {
		t.Fatalf("Promise: %v", err)
	}
	return p
}

// noise is bytes that no compressor makes smaller.
func noise(n int) []byte {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// TestTransport publishes messages of all sizes, and fetches each once, whole; what is not acknowledged comes again to somebody else.
func TestTransport(t *testing.T) {
	opts := sqs.Options{Endpoint: address(t), Namespace: namespace(), Visibility: time.Second}
	tr := connect(t, opts)
	largest := promise(t, tr).MaxMessage
	var messages [][]byte
	want := make(map[string]bool)
	for i, size := range []int{1, 100, 1500, 500_000, 500_000, 600_000, largest, 1, largest, 2, 3} {
		messages = append(messages, append(noise(size-1), byte(i)))
		want[string(messages[i])] = true
	}
	if err := tr.Publish(t.Context(), messages); err != nil {
		t.Fatalf("Publish: %v", err)
	}
	fetch := func(tr *sqs.Transport) []inbox.Message {
		t.Helper()
		var got []inbox.Message
		for len(got) < len(messages) {
			some, err := tr.Fetch(t.Context(), 3)
			if err != nil || len(some) == 0 || len(some) > 3 {
				t.Fatalf("Fetch(3): got %d messages, %v", len(some), err)
			}
			got = append(got, some...)
		}
		return got
	}
	left := maps.Clone(want)
	for _, m := range fetch(tr) {
		if !left[string(m.Body)] {
			t.Errorf("%d bytes came that were not published, or twice", len(m.Body))
		}
		delete(left, string(m.Body))
	}
	if n, err := tr.Waiting(t.Context()); err != nil || n == 0 {
		t.Errorf("Waiting: got %d, %v, want those that are not acknowledged", n, err)
	}
	other := connect(t, opts)
	again := fetch(other) // a second later
	if err := other.Ack(t.Context(), again); err != nil {
		t.Errorf("Ack: %v", err)
	}
	if n, err := tr.Waiting(t.Context()); err != nil || n != 0 {
		t.Errorf("Waiting after everything: got %d, %v", n, err)
	}
	over := make([]byte, largest+100)
	if err := tr.Publish(t.Context(), [][]byte{[]byte("fits"), over}); err == nil {
		t.Error("Publish of more than the largest message: got no error")
	}
}

// TestCloseEndsFetch: a transport that is closed waits for nothing.
func TestCloseEndsFetch(t *testing.T) {
	tr := connect(t, sqs.Options{Endpoint: address(t), Namespace: namespace()})
	ended := make(chan error)
	go func() {
		_, err := tr.Fetch(t.Context(), 1)
		ended <- err
	}()
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Fetch: got error %v, want %v", err, context.Canceled)
	}
}

// between stands between the client and the server and changes answers.
func between(t *testing.T, target string, change func(action string, body []byte) []byte) string {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), r.Method, target, r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header = r.Header.Clone()
		answer, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Error(err)
		}
		_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		body = change(action, body)
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		_, _ = w.Write(body)
	}))
	t.Cleanup(func() {
		h.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return h.URL
}

// refusal is an answer to a batch in which some entries failed.
type refusal struct{ Successful, Failed []map[string]any }

// TestPartialFailure: the service answers 200 and did not take all. What failed by its fault is sent again; what goes on failing, or is ours, is an error.
func TestPartialFailure(t *testing.T) {
	for _, tt := range []struct {
		name   string
		times  int // that the entry fails
		sender bool
		want   bool // an error
	}{
		{"once", 1, false, false},
		{"by our fault", 1, true, true},
		{"for good", 100, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			left, calls := tt.times, 0
			proxy := between(t, address(t), func(action string, body []byte) []byte {
				mu.Lock()
				defer mu.Unlock()
				if action != "SendMessageBatch" {
					return body
				}
				calls++
				if left == 0 {
					return body
				}
				left--
				var answer refusal
				if err := json.Unmarshal(body, &answer); err != nil {
					t.Error(err)
				}
				last := answer.Successful[len(answer.Successful)-1]
				answer.Successful = answer.Successful[:len(answer.Successful)-1]
				answer.Failed = append(answer.Failed, map[string]any{"Id": last["Id"], "Code": "InternalError", "SenderFault": tt.sender})
				body, err := json.Marshal(answer)
				if err != nil {
					t.Error(err)
				}
				return body
			})
			tr := connect(t, sqs.Options{Endpoint: proxy, Namespace: namespace()})
			err := tr.Publish(t.Context(), [][]byte{noise(400_000), noise(400_001), noise(300_000)})
			if (err != nil) != tt.want {
				t.Errorf("Publish: got error %v, want one: %v", err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), "InternalError") {
				t.Errorf("Publish: the error %v does not say what the service said", err)
			}
			if calls < 2 && !tt.sender {
				t.Errorf("%d requests, want it tried again", calls)
			}
		})
	}
}

// TestRefusedQueues: a queue that loses messages is not used.
func TestRefusedQueues(t *testing.T) {
	for _, tt := range []struct{ name, attribute, value, want string }{
		{"a redrive policy", "RedrivePolicy", `{"maxReceiveCount":3,"deadLetterTargetArn":"arn:aws:sqs:x:0:dead"}`, "RedrivePolicy"},
		{"a short memory", "MessageRetentionPeriod", "345600", "1209600"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			proxy := between(t, address(t), func(action string, body []byte) []byte {
				if action != "GetQueueAttributes" {
					return body
				}
				var answer struct{ Attributes map[string]string }
				if err := json.Unmarshal(body, &answer); err != nil {
					t.Error(err)
				}
				answer.Attributes[tt.attribute] = tt.value
				body, err := json.Marshal(answer)
				if err != nil {
					t.Error(err)
				}
				return body
			})
			tr, err := sqs.Connect(t.Context(), sqs.Options{Endpoint: proxy, Namespace: namespace()})
			if err == nil {
				tr.Close(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Connect: got error %v, want one about %s", err, tt.want)
			}
		})
	}
}

// TestClaims: of the emulator is claimed what it says of itself, and of a server that says nothing, nothing.
func TestClaims(t *testing.T) {
	if got := open(t, sqs.Options{Endpoint: address(t)}).Claims(); got.Durability != queue.DurabilityPower || !strings.Contains(got.Version, "emulator") || got.DedupWindow != queue.Forever {
		t.Errorf("claims: got %+v, want power-loss of an emulator", got)
	}
	weak := private(t, map[string]string{"storage": "nosync"})
	if got := open(t, sqs.Options{Endpoint: weak.Address()}).Claims().Durability; got != queue.DurabilityProcess {
		t.Errorf("without syncs: got %q, want %q", got, queue.DurabilityProcess)
	}
	silent := between(t, address(t), func(action string, body []byte) []byte {
		return []byte(strings.ReplaceAll(string(body), "Floodproof", "Some"))
	})
	if got := open(t, sqs.Options{Endpoint: silent}).Claims(); got.Durability != queue.DurabilityNone {
		t.Errorf("of an unknown server: got %+v", got)
	}
}

func TestClaimsInMemory(t *testing.T) {
	const shm = "/dev/shm"
	if _, err := os.Stat(shm); err != nil || runtime.GOOS != "linux" {
		t.Skipf("needs %s of Linux", shm)
	}
	dir, err := os.MkdirTemp(shm, "floodproof") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		t.Skipf("needs a writable %s: %v", shm, err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := server.Start(t.Context(), kind(t), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(t.Context()) })
	if got := promise(t, connect(t, sqs.Options{Endpoint: s.Address()})).Durability; got != queue.DurabilityProcess {
		t.Errorf("durability in memory: got %q, want %q", got, queue.DurabilityProcess)
	}
}

func TestOptions(t *testing.T) {
	for name, opts := range map[string]sqs.Options{
		"no endpoint":      {},
		"no URL":           {Endpoint: "127.0.0.1:9324"},
		"another scheme":   {Endpoint: "redis://127.0.0.1:9324"},
		"an odd namespace": {Endpoint: "http://127.0.0.1:1", Namespace: "a b"},
		"half a second":    {Endpoint: "http://127.0.0.1:1", Visibility: 500 * time.Millisecond},
		"many groups":      {Endpoint: "http://127.0.0.1:1", FIFO: true, Groups: 257},
		"13 hours":         {Endpoint: "http://127.0.0.1:1", Visibility: 13 * time.Hour},
	} {
		if tr, err := sqs.Connect(t.Context(), opts); err == nil {
			tr.Close(t.Context())
			t.Errorf("Connect with %s: got no error", name)
		}
	}
	if q, err := sqs.Open(t.Context(), sqs.Options{Endpoint: address(t)}); err == nil {
		q.Close(t.Context())
		t.Error("Open without a directory: got no error")
	}
}

// TestKnownAgain: a message that came twice, because its deletion was lost, is one job.
func TestKnownAgain(t *testing.T) {
	var mu sync.Mutex
	dropped := 0
	proxy := between(t, address(t), func(action string, body []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		if action == "DeleteMessageBatch" && dropped == 0 {
			dropped++
			return []byte(`{"Successful":[],"Failed":[{"Id":"0","Code":"ServiceUnavailable","SenderFault":true}]}`)
		}
		return body
	})
	q := open(t, sqs.Options{Endpoint: proxy, Visibility: time.Second})
	for i := range 5 {
		enqueue(t, q, fmt.Sprint("evt-", i))
	}
	got := make(map[string]int)
	for len(got) < 5 {
		for _, lease := range receive(t, q, 5) {
			got[lease.EventID]++
			if err := q.Settle(t.Context(), lease, queue.Done()); err != nil {
				t.Fatal(err)
			}
		}
	}
	d, err := q.Depth(t.Context())
	if err != nil || d.Waiting != 0 || d.Done != 5 {
		t.Errorf("depth: got %+v, %v, want 5 done and nothing else", d, err)
	}
}
