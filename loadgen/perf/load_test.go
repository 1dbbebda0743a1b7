package perf

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// slots is how many requests are under way at most, of ours and of vegeta's.
const slots = 256

// every is a constant rate: event n is due n+1 gaps after the start, as vegeta's constant pacer has it.
type every time.Duration

func (e every) At(n int) time.Duration { return time.Duration(n+1) * time.Duration(e) }

// acme is a provider with a body of 1.5 KB that carries the event's id, signed with HMAC-SHA256 over time stamp and body. It costs what a provider has to
// cost and no more, so that it is the generator that is measured.
func acme() *provider.Provider {
	filler := `","note":"` + strings.Repeat("x", 1450) + `"}`
	dot, contentType, agent := []byte{'.'}, []string{"application/json"}, []string{"Acme-Webhooks/1.0"}
	macs := sync.Pool{New: func() any { return hmac.New(sha256.New, []byte(secret)) }}
	return &provider.Provider{
		Name: "acme", Timeout: 10 * time.Second, SuccessMin: 200, SuccessMax: 299, MaxBatch: 1, MeanBatch: 1,
		ID: func(e provider.Event) string { return "acme_" + strconv.FormatUint(e.Key, 36) },
		Render: func(r *provider.Request, d provider.Delivery) {
			r.Header["Content-Type"], r.Header["User-Agent"] = contentType, agent
			r.Body = append(r.Body, `{"id":"acme_`...)
			r.Body = strconv.AppendUint(r.Body, d.Events[0].Key, 36)
			r.Body = append(r.Body, filler...)
		},
		Sign: func(r *provider.Request, s provider.Signing) {
			value := append(strconv.AppendInt(append(make([]byte, 0, 96), "t="...), s.Now.Unix(), 10), ",v1="...)
			stamp := len("t=") + len(value) - len("t=,v1=")
			mac := macs.Get().(hash.Hash)
			defer macs.Put(mac)
			mac.Reset()
			mac.Write(value[len("t="):stamp])
			mac.Write(dot)
			mac.Write(r.Body)
			var sum [sha256.Size]byte
			r.Header["Acme-Signature"] = []string{string(hex.AppendEncode(value, mac.Sum(sum[:0])))}
		},
	}
}

// tally is a Books that counts and keeps how late each attempt was and how long it took.
type tally struct {
	failed, blocked int
	late, latencies []time.Duration
}

func (t *tally) Event(ledger.Event)       {}
func (t *tally) Delivery(ledger.Delivery) {}
func (t *tally) Attempt(a ledger.Attempt) {
	if a.Result != ledger.OK {
		t.failed++
	}
	if a.Blocked {
		t.blocked++
	} else {
		t.late = append(t.late, a.Start-a.Due)
	}
	t.latencies = append(t.latencies, a.Done-a.Due)
}

// figures are what one run came to.
type figures struct {
	// perSecond is the rate that was achieved, from the first due time to the last answer.
	perSecond float64
	// lateP99 is by how much sending began late, of what found a free slot; p50 and p99 are from the due time.
	lateP99, p50, p99 time.Duration
	// requests is how many there were; failed did not succeed, local of them for lack of a port or a descriptor; blocked found no free slot.
	requests, failed, local, blocked int
	// cpu, bytes and mallocs are for each request.
	cpu            time.Duration
	bytes, mallocs float64
}

// percentile returns the p-th percentile and sorts.
func percentile[T cmp.Ordered](all []T, p float64) T {
	var zero T
	if len(all) == 0 {
		return zero
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(p/100*float64(len(all))))]
}

// meter takes the time, the processor time and the memory of what happens between its making and done.
type meter struct {
	start  time.Time
	cpu    time.Duration
	memory runtime.MemStats
}

func newMeter() *meter {
	m := new(meter)
	runtime.GC()
	runtime.ReadMemStats(&m.memory)
	m.cpu, m.start = cpuTime(), time.Now()
	return m
}

// done fills in the figures of so many requests.
func (m *meter) done(f *figures, requests int) {
	took, cpu := time.Since(m.start), cpuTime()-m.cpu
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	n := float64(requests)
	f.requests = requests
	f.perSecond, f.cpu = n/took.Seconds(), cpu/time.Duration(requests)
	f.bytes, f.mallocs = float64(now.TotalAlloc-m.memory.TotalAlloc)/n, float64(now.Mallocs-m.memory.Mallocs)/n
}

// rounds is how often everything is measured, in turn with what it is compared with.
const rounds = 3

// median returns the middle one, and sorts.
func median(all []float64) float64 { return percentile(all, 50) }
