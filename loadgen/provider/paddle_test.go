package provider_test

import (
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// TestPaddleVector: the signature that Paddle's own library publishes, and both while a secret is being rotated.
func TestPaddleVector(t *testing.T) {
	// https://github.com/PaddleHQ/paddle-go-sdk/blob/main/webhook_verifier_test.go (7f86494)
	const secret = "pdl_ntfset_01hsdn8d43dt7mezr1ef2jtbaw_hKkRiCGyyRhbFwIUuqiTBgI7gnWoV0Gr"
	const body = `{"data":{"id":"pri_01hsdn96k2hxjzsq5yerecdj9j","name":null,"status":"active","quantity":{"maximum":999999,"minimum":1},"tax_mode":"account_setting",` +
		`"product_id":"pro_01hsdn8qp7yydry3x1yeg6a9rv","unit_price":{"amount":"1000","currency_code":"USD"},"custom_data":null,"description":"testing","import_meta":null,` +
		`"trial_period":null,"billing_cycle":{"interval":"month","frequency":1},"unit_price_overrides":[]},"event_id":"evt_01hsdn97563968dy0szkmgjwh3",` +
		`"event_type":"price.created","occurred_at":"2024-03-20T10:07:35.590857Z","notification_id":"ntf_01hsdn977e920kbgzt6r6c9rqc"}`
	const want = "ts=1710929255;h1=6c05ef8fa83c44d751be6d259ec955ce5638e2c54095bf128e408e2fce1589c8"
	sign := func(secrets ...string) string {
		r := provider.Request{Body: []byte(body)}
		find(t, "paddle").Sign(&r, provider.Signing{Secrets: secrets, Now: time.Unix(1710929255, 999)})
		return r.Header.Get("Paddle-Signature")
	}
	if got := sign(secret); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := sign(secret, "old"), want+";h1="+hex.EncodeToString(mac256("old", "1710929255:"+body)); got != want {
		t.Errorf("two secrets:\ngot  %s\nwant %s", got, want)
	}
}

// TestPaddleDelays are within what Paddle says of them: 20 retries within the first hour, 47 within the first day, 60 within three days.
func TestPaddleDelays(t *testing.T) {
	sum := time.Duration(0)
	for i, d := range find(t, "paddle").Delays {
		sum += d
		for retry, limit := range map[int]time.Duration{20: time.Hour, 47: 24 * time.Hour, 60: 72 * time.Hour} {
			if i+1 == retry && sum > limit {
				t.Errorf("retry %d comes after %v, want within %v", retry, sum, limit)
			}
		}
	}
}

func TestPaddleSecret(t *testing.T) {
	p := find(t, "paddle")
	form := regexp.MustCompile(`^pdl_ntfset_01[0-9a-hjkmnp-tv-z]{24}_[0-9A-Za-z]{32}$`)
	one, other := p.NewSecret([32]byte{1}), p.NewSecret([32]byte{31: 1})
	if !form.MatchString(one) || !form.MatchString(other) || one == other {
		t.Errorf("secrets %q and %q, want two of the form %s", one, other, form)
	}
}

// TestPaddleAmounts add up as in a real transaction.
func TestPaddleAmounts(t *testing.T) {
	type totals struct{ Tax, Total, Subtotal, Fee, Earnings string }
	cents := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	lines, ids := map[int]bool{}, map[string]bool{}
	for n := range uint64(400) {
		e := eventOf(n, 1)
		if p := find(t, "paddle"); p.Type(e) == "transaction.completed" {
			var event struct {
				Data struct {
					Details struct {
						Totals    totals
						LineItems []struct {
							ID     string
							Totals totals
						} `json:"line_items"`
					}
					Items []struct {
						Quantity int
						Price    struct {
							UnitPrice struct{ Amount string } `json:"unit_price"`
						}
					}
				}
			}
			if err := json.Unmarshal(signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{e}}).Body, &event); err != nil {
				t.Fatal(err)
			}
			all, subtotal, tax := event.Data.Details.Totals, 0, 0
			for i, line := range event.Data.Details.LineItems {
				item := event.Data.Items[i]
				if want := item.Quantity * cents(item.Price.UnitPrice.Amount); cents(line.Totals.Subtotal) != want {
					t.Fatalf("line %d: subtotal %s, want %d", i, line.Totals.Subtotal, want)
				}
				subtotal, tax = subtotal+cents(line.Totals.Subtotal), tax+cents(line.Totals.Tax)
				ids[line.ID] = true
			}
			lines[len(event.Data.Items)] = true
			if cents(all.Subtotal) != subtotal || cents(all.Tax) != tax || cents(all.Total) != subtotal+tax || cents(all.Earnings) != subtotal-cents(all.Fee) {
				t.Fatalf("transaction %d: %+v for lines of %d and tax of %d", n, all, subtotal, tax)
			}
		}
	}
	if len(lines) != 3 || len(ids) < 100 {
		t.Errorf("numbers of lines %v, %d different lines", lines, len(ids))
	}
}
