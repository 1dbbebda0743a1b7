package nats

import (
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	client "github.com/nats-io/nats.go"

	"floodproof/reference/queue"
)

// TestFirstFormats: what an earlier program has stored is read as it was meant.
func TestFirstFormats(t *testing.T) {
	b := []byte{1, byte(leased)}
	b = binary.AppendUvarint(b, 3)
	b = binary.AppendVarint(b, 1000)
	b = binary.AppendUvarint(b, 7)
	b = binary.AppendUvarint(b, 0)
	b = appendText(b, "why")
	want := state{kind: leased, attempt: 3, leases: 3, at: 1000, token: 7, carrier: 10, reason: "why", seq: 9}
	if got, err := decodeState(b, 9); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("state of format 1: got %+v, error %v; want %+v", got, err, want)
	}
	b = []byte{1, encodingRaw}
	b = binary.AppendVarint(b, 5)
	b = binary.AppendVarint(b, 2000)
	for _, text := range []string{"stripe", "evt", "d", "paid", "order", "lane", ""} {
		b = appendText(b, text)
	}
	job := queue.Job{Provider: "stripe", EventID: "evt", DeliveryID: "d", Type: "paid", Resource: "order", Version: 5, Lane: "lane", Payload: []byte("{}"), ReceivedAt: time.UnixMicro(2000).UTC()}
	got, err := decodeJob(append(b, "{}"...))
	if err != nil {
		t.Fatalf("job of format 1: %v", err)
	}
	if diff := cmp.Diff(job, got); diff != "" {
		t.Errorf("job of format 1 (-want +got):\n%s", diff)
	}
}

// TestStateStaysSmall: however often a job fails, with however much to say, its state fits a message, and the newest is kept.
func TestStateStaysSmall(t *testing.T) {
	page := strings.Repeat("no stock ", 4000)
	s := state{kind: waiting, steps: []string{strings.Repeat("s", maxSteps)}}
	for range 2000 {
		before := s
		s = s.granted(0, time.Second, 1)
		s = s.settled(1, queue.Retry(0, page)).acted(2, queue.ActReplay)
		if before.attempts != nil && before.attempts[0].reason == "" && before.attempts[len(before.attempts)-1].reason == "" {
			t.Fatalf("a state changed another that it came from")
		}
	}
	if len(s.attempts) != maxAttempts || s.attempts[maxAttempts-1].number != 2000 || s.attempts[maxAttempts-1].reason != clip(page) || len(s.acts) != maxActs {
		t.Errorf("after 2000 attempts: got %d, the newest number %d", len(s.attempts), s.attempts[len(s.attempts)-1].number)
	}
	if size := len(s.encode()); size > envelope-1024 {
		t.Errorf("the state has %d bytes, a message has room for %d", size, envelope-1024)
	}
	again, err := decodeState(s.encode(), 5)
	s.seq, s.token, s.carrier = 5, 5, 1
	if err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("decoded again: %v, differs:\n%s", err, cmp.Diff(s, again, cmp.AllowUnexported(state{}, attempt{}, act{})))
	}
}

// FuzzRow: nothing that stands in a stream may make a reader panic, and what it can read it writes the same way.
func FuzzRow(f *testing.F) {
	f.Add((&row{version: -1, pending: ref{"a", "lane"}, running: ref{"b", ""}, opened: 1, due: 2, shut: 3}).encode())
	f.Add([]byte{1, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRow(b, 5)
		if err != nil {
			return
		}
		if again, err := decodeRow(r.encode(), 5); err != nil || again != r {
			t.Errorf("row %+v became %+v, error %v", r, again, err)
		}
	})
}

// arriving is the operation of an Enqueue of some updates.
func arriving(t *testing.T, q *Queue, jobs ...queue.Job) *operation {
	t.Helper()
	entries, err := q.pack(jobs)
	if err != nil {
		t.Fatal(err)
	}
	o := newOperation(entries...)
	o.whole = true
	return o
}

func testUpdate(id, resource string) queue.Job {
	return queue.Job{Provider: "shopify", EventID: id, Resource: resource, Debounce: queue.Debounce{Quiet: time.Second, MaxWait: time.Second}}
}

// TestGather: updates of one resource by several callers go in one batch, as one; anything else about the same job or resource waits for the next.
func TestGather(t *testing.T) {
	q := &Queue{subjects: newSubjects("ns"), opts: Options{MaxPayload: 1000}}
	hash, row := hashOf("shopify", "a"), hashOf("shopify", "order")
	plain := testUpdate("a", "")
	plain.Debounce = queue.Debounce{}
	first := arriving(t, q, testUpdate("a", "order"))
	for name, tt := range map[string]struct {
		second *operation
		meets  bool
	}{
		"another update":            {arriving(t, q, testUpdate("b", "order")), false},
		"the same event":            {arriving(t, q, testUpdate("a", "order")), false},
		"the same without debounce": {arriving(t, q, plain), true},
		"the same elsewhere":        {arriving(t, q, testUpdate("a", "cart")), true},
		"another resource":          {arriving(t, q, testUpdate("c", "cart")), false},
		"a lease of the row":        {newOperation(q.about(ref{hash: "x"}, row, func(*sheet) {}).entry()), true},
		"an extension in the row":   {newOperation(q.change("x", state{row: row})), true},
		"an extension elsewhere":    {newOperation(q.change(hash, state{})), false},
	} {
		l := load{keys: make(map[string]string)}
		if !l.take(first) || l.meets(tt.second) != tt.meets {
			t.Errorf("%s: meets the first update: %v, want %v", name, !tt.meets, tt.meets)
		}
	}
	l := load{keys: make(map[string]string)}
	for range 4 { // of a sheet that decides so many messages are expected
		l.take(newOperation(q.about(ref{hash: "x"}, row, func(*sheet) {}).entry()))
	}
	if l.messages != 4*maxDecided || l.full() {
		t.Errorf("messages expected: got %d, want %d", l.messages, 4*maxDecided)
	}
}

// TestFit: what a Receive was given may be more than fits a batch, if each of it could change its row.
func TestFit(t *testing.T) {
	q := &Queue{link: &link{}}
	candidates := func(row string) (out []*candidate) {
		for range maxPull {
			out = append(out, &candidate{delivery: delivery{msg: &client.Msg{Reply: "r"}}, before: state{row: row}})
		}
		return out
	}
	if got := len(q.fit(candidates(""))); got != maxPull {
		t.Errorf("of %d jobs fit %d, want all", maxPull, got)
	}
	if got := len(q.fit(candidates("row"))); got != maxBatchMessages/maxDecided {
		t.Errorf("of %d jobs of rows fit %d, want %d", maxPull, got, maxBatchMessages/maxDecided)
	}
}

// TestAssemble: of what is put together each event is there once, and nothing of a caller who has left.
func TestAssemble(t *testing.T) {
	q := &Queue{subjects: newSubjects("ns"), opts: Options{MaxPayload: 1000}}
	left := arriving(t, q, testUpdate("left", "order"))
	left.state.Store(stateAbandoned)
	live := assemble([]*operation{
		left, arriving(t, q, testUpdate("a", "order")), arriving(t, q, testUpdate("b", "order"), testUpdate("c", "cart")), arriving(t, q, testUpdate("a", "order")),
	})
	var got []string
	for _, e := range live {
		for _, a := range e.sheet.(*sheet).arrivals {
			job, err := decodeJob(a.body)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, job.EventID)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" || len(live) != 2 {
		t.Errorf("%d entries, arrivals (-want +got):\n%s", len(live), diff)
	}
}

// TestRefuse: a row that cannot be read fails those who bring updates of it, with everything that they bring, and nobody else.
func TestRefuse(t *testing.T) {
	q := &Queue{subjects: newSubjects("ns"), opts: Options{MaxPayload: 1000}}
	good, both, shared := arriving(t, q, testUpdate("a", "cart")), arriving(t, q, testUpdate("b", "order"), testUpdate("c", "damaged")), arriving(t, q, testUpdate("d", "order"))
	lease := newOperation(q.about(ref{hash: "x"}, hashOf("shopify", "damaged too"), func(*sheet) {}).entry(), q.change("y", state{}))
	batch := []*operation{good, shared, both, lease}
	assemble(batch)
	if both.entries[0].head != shared.entries[0] {
		t.Fatal("two updates of one resource were not put together")
	}
	both.entries[1].err = errDamaged
	lease.entries[0].err = errDamaged
	refuse(batch)
	for name, want := range map[*operation]bool{good: false, both: true, shared: true, lease: true} {
		if err := failure(name.entries); (err != nil) != want || want && !errors.Is(err, errDamaged) {
			t.Errorf("operation with %d entries: got error %v, want one: %v", len(name.entries), err, want)
		}
	}
	if !both.entries[0].lost && !shared.entries[0].lost || !both.entries[1].lost || !lease.entries[0].lost || good.entries[0].lost || lease.entries[1].lost {
		t.Errorf("lost: %v %v of both, %v of a lease, %v of the good one, %v beside the lease", both.entries[0].lost, both.entries[1].lost, lease.entries[0].lost, good.entries[0].lost, lease.entries[1].lost)
	}
}

// TestStale: what a delivery says may be older than the job's state, and an answer about that may be older than the delivery.
func TestStale(t *testing.T) {
	const now = 1000
	for name, tt := range map[string]struct {
		d     delivery
		s     state
		known bool
		gone  bool
		waits bool
	}{
		"untouched":                    {d: delivery{seq: 5}},
		"done":                         {d: delivery{seq: 5}, s: state{kind: done, seq: 9, carrier: 5}, known: true, gone: true},
		"dropped":                      {d: delivery{seq: 5}, s: state{kind: dropped, seq: 9, carrier: 5}, known: true, gone: true},
		"brought by another":           {d: delivery{seq: 5}, s: state{kind: waiting, seq: 9, carrier: 10}, known: true, gone: true},
		"leased":                       {d: delivery{seq: 5}, s: state{kind: leased, seq: 9, carrier: 5, at: now + 1}, known: true, waits: true},
		"lapsed":                       {d: delivery{seq: 5}, s: state{kind: leased, seq: 9, carrier: 5, at: now}, known: true},
		"again, as it was stored":      {d: delivery{seq: 10, again: true}, s: state{kind: waiting, seq: 9, carrier: 10}, known: true},
		"again, done by an old answer": {d: delivery{seq: 10, again: true}, s: state{kind: done, seq: 8, carrier: 5}, known: true, waits: true},
		"again, and nothing is known":  {d: delivery{seq: 10, again: true}, waits: true},
	} {
		if gone, wait := tt.d.stale(tt.s, tt.known, now); gone != tt.gone || wait > 0 != tt.waits {
			t.Errorf("%s: got gone %v and a wait of %d, want gone %v and a wait: %v", name, gone, wait, tt.gone, tt.waits)
		}
	}
}

// TestAccount: every way from one state to another leaves counts that add up.
func TestAccount(t *testing.T) {
	const now = 1000
	states := map[string]state{
		"none": {}, "waiting": {kind: waiting}, "leased": {kind: leased, at: now + 5}, "lapsed": {kind: leased, at: now - 5},
		"done": {kind: done}, "dead": {kind: dead}, "dropped": {kind: dropped},
	}
	for from, was := range states {
		for to, next := range states {
			one := make(tally)
			one.change("", func(l *laneTally) { l.Stored = 1 })
			one.account("", now, state{}, was)
			one.account("", now, was, next)
			want := queue.Depth{Waiting: 1}
			switch to {
			case "leased":
				want = queue.Depth{Leased: 1}
			case "done":
				want = queue.Depth{Done: 1}
			case "dead":
				want = queue.Depth{Dead: 1}
			case "dropped":
				want = queue.Depth{}
			}
			got := one.depth(now)
			got.Lanes = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("from %s to %s (-want +got):\n%s", from, to, diff)
			}
		}
	}
}
