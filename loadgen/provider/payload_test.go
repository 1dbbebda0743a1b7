package provider_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"floodproof/loadgen/provider"

	"github.com/google/go-cmp/cmp"
)

// TestPayloadOf agrees with encoding/json about where an item begins and ends.
func TestPayloadOf(t *testing.T) {
	for _, p := range provider.All() {
		for n := range uint64(60) {
			d := deliveryOf(p, n, 1)
			for i := range d.Events {
				d.Events[i].Broken = i%7 == 3
			}
			body := signed(p, d).Body
			var want []json.RawMessage
			var err error
			switch p.Name {
			case "hubspot":
				err = json.Unmarshal(body, &want)
			case "klaviyo":
				var batch struct{ Data []json.RawMessage }
				err = json.Unmarshal(body, &batch)
				want = batch.Data
			case "sendgrid":
				err = json.Unmarshal(body, &want)
			case "mailgun":
				var signed struct {
					Event json.RawMessage `json:"event-data"`
				}
				err = json.Unmarshal(body, &signed)
				want = []json.RawMessage{signed.Event}
			case "adyen":
				var webhook struct{ NotificationItems []json.RawMessage }
				err = json.Unmarshal(body, &webhook)
				want = webhook.NotificationItems
			default:
				want = []json.RawMessage{body}
			}
			if err != nil || len(want) != len(d.Events) {
				t.Fatalf("%s: %d items for %d events: %v", p.Name, len(want), len(d.Events), err)
			}
			for i := range want {
				if got := p.PayloadOf(body, i); !bytes.Equal(got, want[i]) {
					t.Fatalf("%s: item %d:\n got %s\nwant %s", p.Name, i, got, want[i])
				}
			}
			if p.MaxBatch > 1 && (p.PayloadOf(body, len(want)) != nil || p.PayloadOf(body, -1) != nil) {
				t.Fatalf("%s: an item that is not there", p.Name)
			}
		}
	}
}

func TestPayloadOfOddBodies(t *testing.T) {
	payloadOf := find(t, "hubspot").PayloadOf
	tests := []struct {
		name, body string
		items      []string
	}{
		{"empty array", `[]`, nil},
		{"spaces", " [ 1 ,\n{\"a\": [ ] } ]", []string{`1`, `{"a": [ ] }`}},
		{"brackets in strings", `[{"a":"]},{"},"\"]"]`, []string{`{"a":"]},{"}`, `"\"]"`}},
		{"escaped backslash before a quote", `[{"a":"\\"},2]`, []string{`{"a":"\\"}`, `2`}},
		{"not an array", `{"a":1}`, nil},
		{"nothing", ``, nil},
		{"cut in an item", `[{"a":1},{"a":`, []string{`{"a":1}`}},
		{"cut in a string", `[{"a":1},"b`, []string{`{"a":1}`}},
		{"cut after a backslash", `["\`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for i := 0; ; i++ {
				item := payloadOf([]byte(tt.body), i)
				if item == nil {
					break
				}
				got = append(got, string(item))
			}
			if diff := cmp.Diff(tt.items, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzPayloadOf: on valid arrays the scanner agrees with encoding/json; on anything else it returns bytes of the body, or nil, and does not panic.
func FuzzPayloadOf(f *testing.F) {
	hubspot := find(f, "hubspot")
	for n := range uint32(3) {
		d := provider.Delivery{Attempt: 1, Events: []provider.Event{eventOf(1, 1), eventOf(2, n+2)}}
		f.Add(signed(hubspot, d).Body, uint8(n))
	}
	for _, seed := range []string{`[]`, ` [ 1 , {"a":"]\"\\"} ] `, `[[],[[]],"x"]`, `[`, `["\`, `[1,,2]`, `[}]`, `{}`, `[tru`} {
		f.Add([]byte(seed), uint8(1))
	}
	f.Fuzz(func(t *testing.T, body []byte, index uint8) {
		got := hubspot.PayloadOf(body, int(index))
		if got != nil && !bytes.Contains(body, got) {
			t.Fatalf("%q is not in the body", got)
		}
		var items []json.RawMessage
		if json.Unmarshal(body, &items) != nil || items == nil {
			return
		}
		var want []byte
		if int(index) < len(items) {
			want = items[index]
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("item %d of %q:\n got %q\nwant %q", index, body, got, want)
		}
	})
}

// FuzzTamper: in a valid body whatever is changed keeps it valid and as long as it was.
func FuzzTamper(f *testing.F) {
	for _, p := range provider.All() {
		f.Add(signed(p, deliveryOf(p, 1, 1)).Body)
	}
	for _, seed := range []string{`{"amount":9,"size":0}`, `{"amount":"12.","portalId":-1}`, `{"value":1e5}`, `{"a":"\"amount\":5"}`, `{"amount":`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range provider.All() {
			b := bytes.Clone(body)
			p.Tamper(b)
			if len(b) != len(body) || json.Valid(body) && !json.Valid(b) {
				t.Fatalf("%s: %q became %q", p.Name, body, b)
			}
		}
	})
}

func BenchmarkPayloadOf(b *testing.B) {
	p := find(b, "hubspot")
	d := provider.Delivery{Attempt: 1}
	for n := range uint64(100) {
		d.Events = append(d.Events, eventOf(n, 2))
	}
	body := signed(p, d).Body
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		p.PayloadOf(body, 99)
	}
}
