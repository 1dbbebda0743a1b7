package vegeta

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lib "github.com/tsenart/vegeta/v12/lib"

	"floodproof/reports/ledger"
)

var started = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// header is of a run with two providers.
func header() ledger.Header {
	return ledger.Header{
		RunID: "r", Scenario: "10k-day", StartedAt: started, Steps: []string{""}, Target: ledger.Target{Kind: "reference", Name: "reference"},
		Providers: []ledger.Provider{{Name: "stripe", Timeout: 10 * time.Second}, {Name: "github", OneShot: true, Timeout: 10 * time.Second}},
	}
}

// write makes a ledger of attempts; each delivery is introduced before its first, with the provider delivery%2.
func write(t *testing.T, h ledger.Header, attempts []ledger.Attempt) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := ledger.Create(&out, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range attempts {
		if a.Try == 1 {
			w.Event(ledger.Event{Number: a.Delivery, ID: fmt.Sprint("evt_", a.Delivery), Provider: uint8(a.Delivery % 2)})
			w.Delivery(ledger.Delivery{Number: a.Delivery, Class: ledger.Genuine, Provider: uint8(a.Delivery % 2), First: a.Delivery, Count: 1})
		}
		w.Attempt(a)
	}
	if err := w.Close(ledger.End{At: time.Minute, Drain: ledger.Drained}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// decode reads results with vegeta's own decoder.
func decode(t *testing.T, encoded []byte, decoder lib.DecoderFactory) []lib.Result {
	t.Helper()
	next := decoder(bytes.NewReader(encoded))
	var all []lib.Result
	for {
		var r lib.Result
		if err := next.Decode(&r); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// formats are both encodings with vegeta's decoder for each.
var formats = []struct {
	name    string
	as      Encoding
	decoder lib.DecoderFactory
}{{"gob", Gob, lib.NewDecoder}, {"json", JSON, lib.NewJSONDecoder}}

func TestEachAttemptIsAResult(t *testing.T) {
	ms := time.Millisecond
	file := write(t, header(), []ledger.Attempt{ // as they ended; vegeta's plot wants them as they were due
		{Delivery: 1, Try: 1, Due: 110 * ms, Start: 110 * ms, Done: 115 * ms, Status: 503, Result: ledger.Refused, Then: ledger.Ended},
		{Delivery: 2, Try: 1, Due: 120 * ms, Start: 120 * ms, Done: 121 * ms, Result: ledger.Unconnected, Then: ledger.Retry},
		{Delivery: 0, Try: 1, Due: 100 * ms, Start: 130 * ms, Done: 140 * ms, Status: 200, Result: ledger.OK, Then: ledger.Settled, Blocked: true},
		{Delivery: 2, Try: 2, Due: 300 * ms, Start: 300 * ms, Done: 10_300 * ms, Result: ledger.Unanswered, Then: ledger.Retry},
		{Delivery: 2, Try: 3, Due: 11_000 * ms, Start: 11_000 * ms, Done: 11_002 * ms, Result: ledger.Unanswered, Then: ledger.Exhausted},
	})
	result := func(seq uint64, code uint16, due, latency time.Duration, url, why string) lib.Result {
		return lib.Result{Attack: "10k-day", Seq: seq, Code: code, Timestamp: started.Add(due), Latency: latency, Error: why, Method: "POST", URL: url}
	}
	want := []lib.Result{
		result(0, 200, 100*ms, 40*ms, "/webhooks/stripe", ""),
		result(1, 503, 110*ms, 5*ms, "/webhooks/github", "503 Service Unavailable"),
		result(2, 0, 120*ms, 1*ms, "/webhooks/stripe", "unconnected: no byte of the request could be sent"),
		result(3, 0, 300*ms, 10_000*ms, "/webhooks/stripe", "unanswered: no answer within the 10s that stripe waits"),
		result(4, 0, 11_000*ms, 2*ms, "/webhooks/stripe", "unanswered: the request was sent, and the connection ended without an answer"),
	}
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			h := header()
			var out bytes.Buffer
			if err := Write(&out, bytes.NewReader(file), &h, f.as); err != nil {
				t.Fatal(err)
			}
			got := decode(t, out.Bytes(), f.decoder)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("results differ (-want +got):\n%s", diff)
			}
			if lib.DecoderFor(bytes.NewReader(out.Bytes())) == nil {
				t.Error("vegeta does not find out which of its formats this is")
			}
		})
	}
}

// TestMetrics asks vegeta for the figures of `vegeta report`: they must be the ledger's. Its percentiles come from a t-digest, which is an estimate; at the
// compression of 100 that it uses, the rank of its p99 is off by a few ten thousandths (https://github.com/tdunning/t-digest).
func TestMetrics(t *testing.T) {
	const count, failed = 50_000, 321
	rng := rand.New(rand.NewPCG(1, 2))
	attempts := make([]ledger.Attempt, count)
	latencies := make([]time.Duration, count)
	for i := range attempts {
		due := time.Duration(i) * time.Millisecond
		latency := time.Duration(2e6 * math.Exp(rng.NormFloat64())).Round(time.Microsecond)
		attempts[i] = ledger.Attempt{Delivery: uint32(i), Try: 1, Due: due, Start: due, Done: due + latency, Status: 200, Result: ledger.OK, Then: ledger.Settled}
		if i < failed {
			attempts[i].Status, attempts[i].Result, attempts[i].Then = 503, ledger.Refused, ledger.Retry
		}
		latencies[i] = latency
	}
	slices.Sort(latencies)
	file, h := write(t, header(), attempts), header()
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Write(&out, bytes.NewReader(file), &h, f.as); err != nil {
				t.Fatal(err)
			}
			var m lib.Metrics
			for _, r := range decode(t, out.Bytes(), f.decoder) {
				m.Add(&r)
			}
			m.Close()
			if m.Requests != count || m.StatusCodes["200"] != count-failed || m.StatusCodes["503"] != failed || m.Success != float64(count-failed)/count {
				t.Errorf("%d requests, %v, success %v; want %d with %d refused", m.Requests, m.StatusCodes, m.Success, count, failed)
			}
			if diff := cmp.Diff([]string{"503 Service Unavailable"}, m.Errors); diff != "" {
				t.Errorf("errors differ (-want +got):\n%s", diff)
			}
			if !m.Earliest.Equal(started) || m.Duration != (count-1)*time.Millisecond || m.Latencies.Max != latencies[count-1] || m.Latencies.Min != latencies[0] {
				t.Errorf("from %v for %v, %v to %v; want from %v for %v, %v to %v", m.Earliest, m.Duration, m.Latencies.Min, m.Latencies.Max,
					started, (count-1)*time.Millisecond, latencies[0], latencies[count-1])
			}
			rank, _ := slices.BinarySearch(latencies, m.Latencies.P99)
			if q := float64(rank) / count; q < 0.989 || q > 0.991 {
				t.Errorf("vegeta's p99 %v is the ledger's p%.2f (p99 %v)", m.Latencies.P99, 100*q, latencies[count*99/100])
			}
		})
	}
}

// TestOpenDeliveriesAlone: nothing is kept of a delivery that is over.
func TestOpenDeliveriesAlone(t *testing.T) {
	h := header()
	x := &writer{header: &h, urls: []string{"/a", "/b"}, encode: Gob.encoder(io.Discard), open: map[uint32]uint8{}}
	for n := range uint32(10_000) {
		x.delivery(&ledger.Delivery{Number: n})
		then := ledger.Settled
		if n%1000 == 0 {
			then = ledger.Retry
		}
		x.attempt(&ledger.Attempt{Delivery: n, Try: 1, Result: ledger.OK, Status: 200, Then: then})
	}
	if x.err != nil || len(x.read) != 10_000 || len(x.open) != 10 {
		t.Errorf("%d results, error %v, %d deliveries remembered; want 10000, none, and the 10 that will be tried again", len(x.read), x.err, len(x.open))
	}
}

func TestIncompleteLedgers(t *testing.T) {
	attempts := make([]ledger.Attempt, 40_000) // several blocks
	for i := range attempts {
		attempts[i] = ledger.Attempt{Delivery: uint32(i), Try: 1, Result: ledger.OK, Status: 200, Then: ledger.Settled}
	}
	whole, h := write(t, header(), attempts), header()
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-100] ^= 1
	stranger := write(t, header(), []ledger.Attempt{{Delivery: 9, Try: 2, Result: ledger.OK, Then: ledger.Settled}})
	tests := []struct {
		name string
		file []byte
		some bool
		want string
	}{
		{"cut", whole[:len(whole)/2], true, ""},
		{"damaged", damaged, true, "damaged at byte"},
		{"attempt of a stranger", stranger, false, "delivery 9 has no provider"},
		{"no ledger", []byte("hello"), false, "not a ledger"},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		err := Write(&out, bytes.NewReader(tt.file), &h, Gob)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
		if got := len(decode(t, out.Bytes(), lib.NewDecoder)); (got > 0) != tt.some || got == len(attempts) {
			t.Errorf("%s: %d results of %d", tt.name, got, len(attempts))
		}
	}
}

type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestFullDisk(t *testing.T) {
	attempts := make([]ledger.Attempt, 20_000)
	for i := range attempts {
		attempts[i] = ledger.Attempt{Delivery: uint32(i), Try: 1, Result: ledger.OK, Status: 200, Then: ledger.Settled}
	}
	h := header()
	if err := Write(&full{room: 200_000}, bytes.NewReader(write(t, h, attempts)), &h, Gob); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v, want that the disk is full", err)
	}
}

func TestAddress(t *testing.T) {
	tests := []struct{ kind, name, want string }{
		{"reference", "reference", "/webhooks/stripe"},
		{"command", "./serve", "/webhooks/stripe"},
		{"url", "https://shop.example/in/{provider}/hook", "https://shop.example/in/stripe/hook"},
		{"url", "https://shop.example/", "https://shop.example/webhooks/stripe"},
		{"url", "", "/webhooks/stripe"},
	}
	for _, tt := range tests {
		if got := address(ledger.Target{Kind: tt.kind, Name: tt.name}, "stripe"); got != tt.want {
			t.Errorf("address of %s %q = %q, want %q", tt.kind, tt.name, got, tt.want)
		}
	}
}
