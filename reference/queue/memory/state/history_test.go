package state_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
	"floodproof/reference/queue/memory/state"
)

// list is all that a filter lets through, page by page.
func list(s *state.Store, now int64, f queue.EventFilter) (events []queue.Event, pages int) {
	for c := (state.Command{Op: state.Events, ID: math.MinInt64, Filter: f}); ; pages++ {
		r := s.Apply(now, &c)
		events = append(events, r.Events...)
		if r.Next == c.ID {
			return events, pages
		}
		c.ID = r.Next
	}
}

// states are the events of a list and their states.
func states(s *state.Store, now int64) (out []string) {
	events, _ := list(s, now, queue.EventFilter{})
	for _, e := range events {
		out = append(out, fmt.Sprint(e.EventID, " ", e.State))
	}
	return out
}

// finish enqueues events and ends each with an outcome.
func finish(t *testing.T, s *state.Store, now int64, op state.Op, ids ...string) {
	t.Helper()
	for _, id := range ids {
		s.Apply(now, &state.Command{Op: state.Enqueue, Jobs: []queue.Job{{Provider: "p", EventID: id, Payload: []byte("body of " + id)}}})
		l := s.Apply(now, &state.Command{Op: state.Lease, Max: 1, For: time.Hour}).Leases
		if len(l) != 1 || s.Apply(now, &state.Command{Op: op, ID: l[0].ID, Token: l[0].Token, EventID: id, Name: "because"}).Lost {
			t.Fatalf("leased %+v, which should have been %s", l, id)
		}
	}
}

// TestRetain: what was finished goes when it is older than it may be, from its last end, and not before. Nothing else goes, and what went is new if it comes again.
func TestRetain(t *testing.T) {
	s := state.New(0)
	s.Keep = true
	finish(t, s, 10, state.Done, "done", "again")
	finish(t, s, 11, state.Dead, "letter", "dropped")
	s.Apply(20, &state.Command{Op: state.Drop, Name: "p", EventID: "dropped"})
	s.Apply(20, &state.Command{Op: state.Replay, Name: "p", EventID: "again"})
	l := s.Apply(30, &state.Command{Op: state.Lease, Max: 1, For: time.Hour}).Leases[0]
	if l.Attempt != 1 || string(l.Payload) != "body of again" {
		t.Errorf("replayed: got %+v", l)
	}
	s.Apply(50, &state.Command{Op: state.Done, ID: l.ID, Token: l.Token, EventID: "again"})
	for _, tt := range []struct {
		now           int64
		done, expired int64
		want          []string
	}{
		{110, 2, 0, []string{"done done", "again done", "letter failed", "dropped dropped"}},
		{111, 1, 1, []string{"again done", "letter failed", "dropped dropped"}},
		{120, 1, 1, []string{"again done", "letter failed", "dropped dropped"}},
		{121, 1, 1, []string{"again done", "letter failed"}},
		{150, 1, 1, []string{"again done", "letter failed"}},
		{151, 0, 2, []string{"letter failed"}},
		{1 << 50, 0, 2, []string{"letter failed"}},
	} {
		s.Apply(tt.now, &state.Command{Op: state.Retain, For: 100 * time.Microsecond})
		d := s.Apply(tt.now, &state.Command{Op: state.Depth}).Depth
		if diff := cmp.Diff(tt.want, states(s, tt.now)); diff != "" || d.Done != tt.done || d.Expired != tt.expired {
			t.Errorf("at %d: depth %+v, want %d done and %d expired; events (-want +got):\n%s", tt.now, d, tt.done, tt.expired, diff)
		}
	}
	wantNew(t, s, "done", "again", "dropped")
}

// TestRetainOfIdentities: what was finished while nothing was kept of it goes with a retention all the same.
func TestRetainOfIdentities(t *testing.T) {
	s := state.New(0)
	finish(t, s, 10, state.Done, "done")
	finish(t, s, 10, state.Dead, "letter", "dropped")
	s.Apply(20, &state.Command{Op: state.Drop, Name: "p", EventID: "dropped"})
	for _, op := range []state.Op{state.Replay, state.Event} {
		if r := s.Apply(30, &state.Command{Op: op, Name: "p", EventID: "done"}); r.Refused != queue.ErrUnknownEvent.Error() {
			t.Errorf("operation %d of what is not kept: got %+v", op, r)
		}
	}
	s.Apply(40, &state.Command{Op: state.Enqueue, Jobs: []queue.Job{{Provider: "p", EventID: "done"}, {Provider: "p", EventID: "dropped"}}}) // known
	if diff := cmp.Diff([]string{"letter failed"}, states(s, 40)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	s.Apply(121, &state.Command{Op: state.Retain, For: 100 * time.Microsecond})
	if d := s.Apply(121, &state.Command{Op: state.Depth}).Depth; d.Done != 0 || d.Expired != 1 || d.Dead != 1 {
		t.Errorf("got %+v, want the letter, and one expired", d)
	}
	wantNew(t, s, "done", "dropped")
}

// wantNew enqueues events that are not known.
func wantNew(t *testing.T, s *state.Store, ids ...string) {
	t.Helper()
	const now = 1 << 51
	before := len(states(s, now))
	for _, id := range append(ids, "letter") {
		s.Apply(now, &state.Command{Op: state.Enqueue, Jobs: []queue.Job{{Provider: "p", EventID: id}}})
	}
	if got := len(states(s, now)) - before; got != len(ids) {
		t.Errorf("%d of %v are new, want all, and not the letter", got, ids)
	}
}

// TestForgottenIsFreed: the memory of what is forgotten is given back, and of what is finished without being kept, or whose payload is in a log, there is hardly any.
func TestForgottenIsFreed(t *testing.T) {
	const events, payload = 2000, 20_000
	for name, tt := range map[string]struct {
		keep   bool
		place  int64
		retain bool
	}{"forgotten": {keep: true, retain: true}, "lean": {}, "in a log": {keep: true, place: 1}} {
		before := heap()
		s := state.New(0)
		s.Keep = tt.keep
		for i := range events {
			j := queue.Job{Provider: "p", EventID: fmt.Sprint("evt_", i), Payload: make([]byte, payload)}
			s.Apply(int64(i), &state.Command{Op: state.Enqueue, Jobs: []queue.Job{j}, Place: tt.place})
			l := s.Apply(int64(i), &state.Command{Op: state.Lease, Max: 1, For: time.Hour}).Leases[0]
			s.Apply(int64(i), &state.Command{Op: state.Done, ID: l.ID, Token: l.Token})
		}
		if tt.retain {
			if got := heap() - before; got < events*payload {
				t.Fatalf("%s: %d bytes are held before anything is forgotten: nothing is measured", name, got)
			}
			s.Apply(events+2, &state.Command{Op: state.Retain, For: time.Microsecond})
		}
		if got := heap() - before; got > events*payload/20 {
			t.Errorf("%s: %d bytes are held of %d events", name, got, events)
		}
		runtime.KeepAlive(s)
	}
}

// heap is what is reachable.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestPastIsBounded: of a job that is tried without end the newest attempts are known, and how many there were; a lease that lapsed is one of them.
func TestPastIsBounded(t *testing.T) {
	s := state.New(0)
	s.Apply(1, &state.Command{Op: state.Enqueue, Jobs: []queue.Job{{Provider: "p", EventID: "a"}}})
	now := int64(1)
	for range 300 {
		now += 10
		l := s.Apply(now, &state.Command{Op: state.Lease, Max: 1, For: time.Microsecond}).Leases[0]
		if l.Attempt%2 == 0 { // every other one lapses
			s.Apply(now, &state.Command{Op: state.Retry, ID: l.ID, Token: l.Token, Name: "no"})
		}
	}
	for range 40 {
		s.Apply(now, &state.Command{Op: state.Replay, Name: "p", EventID: "a"})
	}
	e := s.Apply(now, &state.Command{Op: state.Event, Name: "p", EventID: "a"}).Events[0]
	if e.Leases != 300 || e.Attempt != 0 || len(e.Attempts) != 256 || len(e.Acts) != 32 {
		t.Fatalf("got %d leases, attempt %d, %d attempts and %d acts; want 300, 0, 256 and 32", e.Leases, e.Attempt, len(e.Attempts), len(e.Acts))
	}
	for i, want := range []queue.Attempt{{Number: 299, At: time.UnixMicro(now - 9), Reason: "lease lapsed"}, {Number: 300, At: time.UnixMicro(now), Reason: "no"}} {
		if diff := cmp.Diff(want, e.Attempts[254+i]); diff != "" {
			t.Errorf("attempt (-want +got):\n%s", diff)
		}
	}
}

// TestGivenBackIsNoLease: a lease that nobody got to see is in no history.
func TestGivenBackIsNoLease(t *testing.T) {
	s := state.New(0)
	s.Apply(1, &state.Command{Op: state.Enqueue, Jobs: []queue.Job{{Provider: "p", EventID: "a"}}})
	l := s.Apply(2, &state.Command{Op: state.Lease, Max: 1, For: time.Second}).Leases[0]
	s.Apply(3, &state.Command{Op: state.GiveBack, ID: l.ID, Token: l.Token})
	if e := s.Apply(4, &state.Command{Op: state.Event, Name: "p", EventID: "a"}).Events[0]; e.Leases != 0 || e.Attempt != 0 || len(e.Attempts) != 0 {
		t.Errorf("got %+v, want no lease", e)
	}
}

// TestEventsPaged: pages follow each other without a gap, also when most of what was there is forgotten, and when few of many are chosen.
func TestEventsPaged(t *testing.T) {
	s := state.New(0)
	s.Keep = true
	const events = 40_000
	var jobs []queue.Job
	for i := range events {
		jobs = append(jobs, queue.Job{Provider: "p", EventID: fmt.Sprint(i), Type: fmt.Sprint("type-", i%1000)})
	}
	s.Apply(1, &state.Command{Op: state.Enqueue, Jobs: jobs})
	for _, l := range s.Apply(2, &state.Command{Op: state.Lease, Max: events - 10, For: time.Hour}).Leases {
		s.Apply(3, &state.Command{Op: state.Done, ID: l.ID, Token: l.Token})
	}
	all, pages := list(s, 4, queue.EventFilter{})
	few, _ := list(s, 4, queue.EventFilter{Type: "*-7"})
	if len(all) != events || pages < 2 || len(few) != events/1000 {
		t.Fatalf("got %d events on %d pages, and %d of a type; want %d on several, and %d", len(all), pages, len(few), events, events/1000)
	}
	for i, e := range all {
		if e.EventID != fmt.Sprint(i) {
			t.Fatalf("the event at %d is %s", i, e.EventID)
		}
	}
	s.Apply(5, &state.Command{Op: state.Retain, For: time.Microsecond})
	if left, _ := list(s, 5, queue.EventFilter{}); len(left) != 10 || left[0].EventID != fmt.Sprint(events-10) {
		t.Errorf("after all but 10 were forgotten: got %d", len(left))
	}
}

// TestPayloadElsewhere: a payload that is in a log is asked for when its event is replayed, of the right event, and only then.
func TestPayloadElsewhere(t *testing.T) {
	s := state.New(0)
	s.Keep = true
	s.Apply(1, &state.Command{Op: state.Enqueue, Jobs: []queue.Job{{Provider: "p", EventID: "a", Payload: []byte("body")}}, Place: 77})
	event := state.Command{Op: state.Event, Name: "p", EventID: "a"}
	if r := s.Apply(2, &event); r.Place != 0 || string(r.Events[0].Payload) != "body" {
		t.Errorf("while it waits: got %+v", r)
	}
	l := s.Apply(3, &state.Command{Op: state.Lease, Max: 1, For: time.Hour}).Leases[0]
	s.Apply(4, &state.Command{Op: state.Done, ID: l.ID, Token: l.Token})
	if r := s.Apply(5, &event); r.Place != 77 || len(r.Events[0].Payload) != 0 {
		t.Errorf("when it is done: got %+v, want to be sent to the log", r)
	}
	replay := state.Command{Op: state.Replay, Name: "p", EventID: "a"}
	asked := s.Apply(6, &replay)
	replay.ID, replay.Jobs = asked.Next+1, []queue.Job{{Payload: []byte("of another event")}}
	again := s.Apply(7, &replay)
	if asked.Place != 77 || again.Place != 77 || len(s.Apply(8, &event).Events[0].Acts) != 0 {
		t.Fatalf("Replay without the payload, and with another's: got %+v and %+v, want to be sent to the log", asked, again)
	}
	replay.ID, replay.Jobs = asked.Next, []queue.Job{{Payload: []byte("body")}}
	if r := s.Apply(9, &replay); r.Place != 0 || r.Refused != "" {
		t.Fatalf("Replay with the payload: got %+v", r)
	}
	if l := s.Apply(10, &state.Command{Op: state.Lease, Max: 1, For: time.Hour}).Leases; len(l) != 1 || string(l[0].Payload) != "body" {
		t.Errorf("leased %+v, want the event with its payload", l)
	}
}

// TestRandomHistory plays random commands, with replays and a retention, and wants the list of events to be what the depth says at every moment.
func TestRandomHistory(t *testing.T) {
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := state.New(0)
		s.Keep = true
		var leases []queue.Lease
		finished := int64(0) // done and expired
		for now := int64(1); now < 500; now += r.Int64N(4) {
			c := random(r, leases)
			if r.IntN(20) == 0 {
				c = state.Command{Op: state.Retain, For: time.Duration(20+r.IntN(60)) * time.Microsecond}
			}
			got := s.Apply(now, &c)
			leases = append(leases, got.Leases...)
			d := s.Apply(now, &state.Command{Op: state.Depth}).Depth
			events, _ := list(s, now, queue.EventFilter{})
			counts := make(map[queue.State]int64)
			for _, e := range events {
				if e.State == queue.StateProcessing && e.Deadline.UnixMicro() <= now {
					e.State = queue.StatePending // as the depth counts
				}
				counts[e.State]++
			}
			want := map[queue.State]int64{
				queue.StatePending: d.Waiting, queue.StateProcessing: d.Leased, queue.StateDone: d.Done, queue.StateFailed: d.Dead, queue.StateDropped: counts[queue.StateDropped],
			}
			for state, n := range want {
				if counts[state] != n {
					t.Fatalf("seed %d, instant %d, after %+v: %d events are %s, the depth is %+v", seed, now, c, counts[state], state, d)
				}
			}
			if c.Op != state.Replay && d.Done+d.Expired < finished {
				t.Fatalf("seed %d, instant %d, after %+v: done and expired are %d after %d", seed, now, c, d.Done+d.Expired, finished)
			}
			finished = d.Done + d.Expired
		}
		drain(t, s)
	}
}
