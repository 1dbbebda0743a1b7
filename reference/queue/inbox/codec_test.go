package inbox

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

func sample() []queue.Job {
	return []queue.Job{
		{
			Provider: "stripe", EventID: "evt_1", DeliveryID: "d", Type: "invoice.paid", Resource: "in_1", Version: -7, Lane: "mail",
			Payload: bytes.Repeat([]byte(`{"id":"evt_1"}`), 40), ReceivedAt: time.UnixMicro(1_790_000_000_000_001),
			Debounce: queue.Debounce{Quiet: time.Second, MaxWait: time.Minute, Edge: queue.Both},
		},
		{Provider: "shopify", EventID: "2", DeadOnArrival: "not JSON", Payload: []byte{0}, ReceivedAt: time.UnixMicro(0)},
	}
}

func TestCodec(t *testing.T) {
	at := time.UnixMicro(1_795_000_000_000_000)
	messages, err := encoder{}.encode(sample(), at)
	if err != nil || len(messages) != 1 {
		t.Fatalf("encode: got %d messages, error %v; want one", len(messages), err)
	}
	jobs, published, err := decode(messages[0])
	if err != nil || !published.Equal(at) {
		t.Fatalf("decode: published %v, error %v; want %v", published, err, at)
	}
	if diff := cmp.Diff(sample(), jobs); diff != "" {
		t.Errorf("the jobs changed on their way (-want +got):\n%s", diff)
	}
	for i := range messages[0] {
		m := bytes.Clone(messages[0])
		m[i] ^= 0x10
		if _, _, err := decode(m); err == nil {
			t.Errorf("with byte %d changed it is read without an error", i)
		}
	}
}

// FuzzDecode: whatever comes is read or refused, and what was read says the same when it is written again.
func FuzzDecode(f *testing.F) {
	for _, jobs := range [][]queue.Job{sample(), sample()[1:]} {
		messages, err := encoder{}.encode(jobs, time.UnixMicro(1))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(messages[0], true)
		f.Add(messages[0][headerSize:], false)
	}
	f.Add([]byte("fp\x01\x01\x00\x00\x00\x00\xff\xff\xff\xff\x0f"), true) // 4 GiB, it says
	f.Fuzz(func(t *testing.T, m []byte, sealed bool) {
		if !sealed { // go past the checksum, where the interesting part is
			m = append([]byte{'f', 'p', formatVersion, 0, 0, 0, 0, 0}, m...)
			if len(m) > headerSize && m[headerSize]&1 != 0 {
				m[3] = flagS2
			}
			sum := checksum(m)
			m[4], m[5], m[6], m[7] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		}
		jobs, at, err := decode(m)
		if err != nil {
			return
		}
		again, err := encoder{}.encode(jobs, at)
		if err != nil || len(again) != 1 {
			t.Fatalf("write it again: %d messages, error %v", len(again), err)
		}
		same, when, err := decode(again[0])
		if err != nil || !when.Equal(at) {
			t.Fatalf("read it again: %v at %v, want %v", err, when, at)
		}
		if diff := cmp.Diff(jobs, same); diff != "" {
			t.Errorf("it changed (-want +got):\n%s", diff)
		}
	})
}

// TestAge: what a job spent in the transport counts, if it came with a batch that is known.
func TestAge(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1_790_000_000+int64(seconds), 0) }
	var a arrivals
	a.add(arrival{begin: at(100), end: at(101), published: at(60)})
	a.add(arrival{begin: at(110), end: at(111), published: at(109)})
	for name, test := range map[string]struct{ age, want time.Duration }{
		"nothing waits":       {0, 0},
		"of the first batch":  {100 * time.Second, 140 * time.Second}, // due at 100
		"of the second batch": {89 * time.Second, 91 * time.Second},
		"of neither":          {95 * time.Second, 95 * time.Second},
	} {
		if got := a.age(test.age, at(200), at(200)); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	for range remembered {
		a.add(arrival{begin: at(150), end: at(150), published: at(150)})
	}
	if got := a.age(100*time.Second, at(200), at(200)); got != 100*time.Second {
		t.Errorf("of a batch long ago: got %v, want what the store said", got)
	}
}
