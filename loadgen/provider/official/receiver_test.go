package official_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"floodproof/reference"
	"floodproof/reference/queue"

	"github.com/adyen/adyen-go-api-library/v21/src/hmacvalidator"
	adyen "github.com/adyen/adyen-go-api-library/v21/src/webhook"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/webhook"
	svix "github.com/svix/svix-webhooks/go"
)

// helper is what a library has to offer to those who test their receiver.
type helper struct {
	name, provider string
	// sign signs an unsigned request. Where the library has types for what it signs, the body becomes what the library makes of them.
	sign func(secret string, at time.Time, r *request) error
}

func helpers() []helper {
	return []helper{
		{"stripe-go", "stripe", signStripe},
		{"standard-webhooks", "standard-webhooks", signStandard},
		{"svix", "svix", signSvix},
		{"adyen-go-api-library", "adyen", signAdyen},
	}
}

func signStripe(secret string, at time.Time, r *request) error {
	var event stripe.Event
	if err := json.Unmarshal(r.Body, &event); err != nil {
		return err
	}
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: secret, Timestamp: at})
	r.Body = signed.Payload
	r.Header.Set("Stripe-Signature", signed.Header)
	return nil
}

func signStandard(secret string, at time.Time, r *request) error {
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	signature, err := wh.Sign(r.Header.Get(standardwebhooks.HeaderWebhookID), at, r.Body)
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return err
}

func signSvix(secret string, at time.Time, r *request) error {
	wh, err := svix.NewWebhook(secret)
	if err != nil {
		return err
	}
	signature, err := wh.Sign(r.Header.Get("svix-id"), at, r.Body)
	r.Header.Set("svix-timestamp", strconv.FormatInt(at.Unix(), 10))
	r.Header.Set("svix-signature", signature)
	return err
}

func signAdyen(secret string, _ time.Time, r *request) error {
	notification, err := adyen.HandleRequest(string(r.Body))
	if err != nil {
		return err
	}
	for i := range *notification.NotificationItems {
		item := &(*notification.NotificationItems)[i].NotificationRequestItem
		signature, err := hmacvalidator.CalculateHmac(*item, secret)
		if err != nil {
			return err
		}
		(*item.AdditionalData)["hmacSignature"] = signature
	}
	r.Body, err = json.Marshal(notification)
	return err
}

// TestReceiverAcceptsHelpers: what a library's helper signs, the reference receiver takes and queues, and nothing that is signed with another secret.
func TestReceiverAcceptsHelpers(t *testing.T) {
	for _, h := range helpers() {
		t.Run(h.name, func(t *testing.T) {
			p := find(t, h.provider)
			secret, other := secretOf(p, 1), secretOf(p, 2)
			q := new(shelf)
			url := receive(t, q, h.provider, secret)
			for n := range uint64(forged) {
				r := render(p, n)
				if err := h.sign(secret, now, r); err != nil {
					t.Fatal(err)
				}
				if status, answer := post(t, url, r); status != http.StatusOK {
					t.Fatalf("delivery %d is answered %d %s\n%v\n%s", n, status, answer, r.Header, r.Body)
				}
				e := deliveryOf(p, n).Events[0]
				if got, want := q.take(), []fact{{p.ID(e), p.Type(e)}}; !slices.Equal(got, want) {
					t.Fatalf("delivery %d is queued as %v, want %v\n%s", n, got, want, r.Body)
				}
				if err := h.sign(other, now, r); err != nil {
					t.Fatal(err)
				}
				if status, answer := post(t, url, r); status != http.StatusUnauthorized || len(q.take()) > 0 {
					t.Fatalf("delivery %d, signed with another secret, is answered %d %s", n, status, answer)
				}
			}
		})
	}
}

// receive serves the reference receiver for one provider, and returns where it takes deliveries.
func receive(t *testing.T, q queue.Queue, name, secret string) (url string) {
	t.Helper()
	rc, err := reference.NewReceiver(reference.ReceiverConfig{
		Queue:     q,
		Providers: map[string]reference.ProviderConfig{name: {Secrets: []reference.Secret{reference.Secret(secret)}}},
		Now:       func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rc)
	t.Cleanup(server.Close)
	return server.URL + "/webhooks/" + name
}

// post sends a request and returns the answer.
func post(t *testing.T, url string, r *request) (status int, answer string) {
	t.Helper()
	out, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	out.Header = r.Header
	in, err := http.DefaultClient.Do(out)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Body.Close()
	body, err := io.ReadAll(in.Body)
	if err != nil {
		t.Fatal(err)
	}
	return in.StatusCode, string(body)
}

// shelf is a queue that keeps what was put into it since it was last looked at. Nobody works on its jobs.
type shelf struct {
	mu    sync.Mutex
	facts []fact
}

func (s *shelf) Enqueue(_ context.Context, jobs ...queue.Job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range jobs {
		s.facts = append(s.facts, fact{job.EventID, job.Type})
	}
	return nil
}

// take empties the shelf.
func (s *shelf) take() []fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	facts := s.facts
	s.facts = nil
	return facts
}

func (*shelf) Receive(ctx context.Context, _ string, _ int) ([]queue.Lease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*shelf) Settle(context.Context, queue.Lease, queue.Outcome) error { return queue.ErrLeaseLost }

func (*shelf) Close(context.Context) error { return nil }
