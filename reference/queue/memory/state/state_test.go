package state_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"floodproof/reference/queue"
	"floodproof/reference/queue/memory/state"
)

// fullCommand and listCommand, and fullResult, have no field of the binary form that is zero.
var (
	fullJob = queue.Job{
		Provider: "stripe", EventID: "evt", DeliveryID: "d", Type: "t", Resource: "r", Version: -7, Lane: "l", Payload: []byte{0, 255},
		ReceivedAt: time.Unix(1_790_000_000, 5), Debounce: queue.Debounce{Quiet: 1, MaxWait: 2, Edge: queue.Both}, DeadOnArrival: "x",
	}
	fullCommand = state.Command{Op: state.Enqueue, Max: 1, ID: -2, Token: 3, For: time.Second, Name: "n", EventID: "e", Jobs: []queue.Job{fullJob, {}}}
	listCommand = state.Command{Op: state.Events, ID: 6, Filter: queue.EventFilter{
		Since: time.Unix(1, 2), Until: time.Unix(3, 4), Provider: "p", State: queue.StateDone, Type: "a*"}}
	fullResult = state.Result{
		Lost: true, Refused: "r", Next: 4, Place: 5, Deadline: time.Unix(1, 2), Steps: []string{"s", ""},
		Leases:  []queue.Lease{{Job: fullJob, ID: 1, Token: 2, Attempt: 3, Deadline: time.Unix(3, 4)}},
		Letters: []queue.DeadLetter{{Job: fullJob, Reason: "r", Attempts: 5, At: time.Unix(6, 7)}},
		Events: []queue.Event{{
			Job: fullJob, State: queue.StateDone, Since: time.Unix(8, 9), Deadline: time.Unix(10, 11), Leases: 12, Attempt: 13,
			Attempts: []queue.Attempt{{Number: 14, At: time.Unix(15, 16), Reason: "r"}}, Acts: []queue.Act{{What: queue.ActReplay, At: time.Unix(17, 18), Leases: 19}},
		}},
		Depth: queue.Depth{Waiting: 1, Leased: 2, Dead: 3, Done: 4, Expired: 6, Oldest: 5, Held: 7, Lanes: []queue.LaneDepth{
			{Lane: "l", Waiting: 1, Leased: 2, Dead: 3, Done: 4, Expired: 6, Oldest: 5, Held: 7}}},
	}
)

func TestRoundTrip(t *testing.T) {
	for _, want := range []state.Command{fullCommand, listCommand} {
		command, rest, err := state.ReadCommand(append(state.AppendCommand(nil, &want), "next"...))
		if diff := cmp.Diff(want, command, cmpopts.EquateEmpty()); err != nil || diff != "" || string(rest) != "next" {
			t.Errorf("command: error %v, rest %q (-want +got):\n%s", err, rest, diff)
		}
	}
	result, err := state.ReadResult(state.AppendResult(nil, &fullResult))
	if diff := cmp.Diff(fullResult, result, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("result: error %v (-want +got):\n%s", err, diff)
	}
	if got := len(state.AppendCommand(nil, &state.Command{Jobs: []queue.Job{fullJob}})); got > state.Size(&fullJob) {
		t.Errorf("a job of size %d needs %d bytes", state.Size(&fullJob), got)
	}
}

func TestReadRefuses(t *testing.T) {
	command, result := state.AppendCommand(nil, &fullCommand), state.AppendResult(nil, &fullResult)
	for n := range command {
		if _, _, err := state.ReadCommand(command[:n]); err == nil {
			t.Errorf("the first %d of %d bytes of a command: got no error", n, len(command))
		}
	}
	for n := range result {
		if _, err := state.ReadResult(result[:n]); err == nil {
			t.Errorf("the first %d of %d bytes of a result: got no error", n, len(result))
		}
	}
	if _, err := state.ReadResult(append(result, 0)); err == nil {
		t.Errorf("a result with a byte too many: got no error")
	}
}

func FuzzReadCommand(f *testing.F) {
	f.Add(state.AppendCommand(nil, &fullCommand))
	f.Add(state.AppendCommand(nil, &listCommand))
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, _, err := state.ReadCommand(b)
		if err != nil {
			return
		}
		again, rest, err := state.ReadCommand(state.AppendCommand(nil, &c))
		if diff := cmp.Diff(c, again); err != nil || len(rest) > 0 || diff != "" {
			t.Fatalf("read again: error %v, %d bytes left (-first +second):\n%s", err, len(rest), diff)
		}
		state.New(0).Apply(0, &c) // whatever it says
	})
}

func FuzzReadResult(f *testing.F) {
	f.Add(state.AppendResult(nil, &fullResult))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := state.ReadResult(b)
		if err != nil {
			return
		}
		again, err := state.ReadResult(state.AppendResult(nil, &r))
		if diff := cmp.Diff(r, again); err != nil || diff != "" {
			t.Fatalf("read again: error %v (-first +second):\n%s", err, diff)
		}
	})
}

// random makes commands that hit each other: few events, few lanes, leases that lapse soon.
func random(r *rand.Rand, leases []queue.Lease) state.Command {
	lane := fmt.Sprint("lane-", r.IntN(2))
	c := state.Command{Name: lane, Max: 1 + r.IntN(4), For: time.Duration(1+r.IntN(50)) * time.Microsecond}
	if len(leases) > 0 && r.IntN(2) == 0 {
		l := leases[r.IntN(len(leases))]
		c.ID, c.Token, c.Name = l.ID, l.Token, "because"
		c.Op = []state.Op{state.Done, state.Retry, state.Dead, state.Extend, state.GiveBack, state.Finish}[r.IntN(6)]
		return c
	}
	switch r.IntN(8) {
	case 0:
		c.Op, c.Name, c.EventID = []state.Op{state.Redrive, state.Redrive, state.Drop, state.Replay}[r.IntN(4)], "p", fmt.Sprint(r.IntN(60))
	case 1, 2, 3:
		c.Op = state.Lease
	default:
		c.Op = state.Enqueue
		for range 1 + r.IntN(3) {
			j := queue.Job{Provider: "p", EventID: fmt.Sprint(r.IntN(60)), Lane: lane, Version: r.Int64N(9)}
			if r.IntN(2) == 0 {
				j.Resource = fmt.Sprint("r-", lane, r.IntN(3))
				j.Debounce = queue.Debounce{Quiet: 10 * time.Microsecond, MaxWait: 40 * time.Microsecond, Edge: queue.Edge(r.IntN(3))}
			}
			c.Jobs = append(c.Jobs, j)
		}
	}
	return c
}

// TestRandomCommands plays random commands, some of them late, to two stores, and keeps its own list of who owns what: nothing is leased twice at once, no resource is
// worked on twice at once, tokens grow, everything that came is somewhere, and both stores are one.
func TestRandomCommands(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		one, two := state.New(0), state.New(0)
		known := make(map[string]bool)
		owner := make(map[int64]queue.Lease)
		var leases []queue.Lease
		var last, dropped int64
		for now := int64(1); now < 600; now += r.Int64N(4) {
			c := random(r, leases)
			got, again := one.Apply(now, &c), two.Apply(now, &c)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Fatalf("seed %d, instant %d: two stores differ:\n%s", seed, now, diff)
			}
			for _, j := range c.Jobs {
				known[j.EventID] = true
			}
			if held, ok := owner[c.ID]; ok && held.Token == c.Token && !got.Lost {
				switch c.Op {
				case state.Extend:
					held.Deadline = got.Deadline
					owner[c.ID] = held
				case state.Done, state.Dead, state.Retry, state.GiveBack:
					delete(owner, c.ID)
				case state.Enqueue, state.Lease, state.Finish, state.Redrive, state.Drop, state.Steps, state.Depth, state.Letters, state.Replay, state.Event, state.Events, state.Retain: // change no lease, or are looked at below
				}
			} else if c.Op >= state.Done && c.Op <= state.Finish && !got.Lost {
				t.Fatalf("seed %d, instant %d: %+v was not refused although it is not the last lease", seed, now, c)
			}
			for _, l := range got.Leases {
				for id, other := range owner {
					alive := other.Deadline.UnixMicro() > now
					if alive && (id == l.ID || l.Debounce.Quiet > 0 && other.Debounce.Quiet > 0 && other.Resource == l.Resource) {
						t.Fatalf("seed %d, instant %d: %+v was leased while %+v was", seed, now, l, other)
					}
				}
				if l.Token <= last || l.Lane != c.Name {
					t.Fatalf("seed %d: lease %+v of %s after token %d", seed, l, c.Name, last)
				}
				last, owner[l.ID], leases = l.Token, l, append(leases, l)
			}
			if c.Op == state.Drop && got.Refused == "" {
				dropped++
			}
			d := one.Apply(now, &state.Command{Op: state.Depth}).Depth
			if sum := d.Waiting + d.Leased + d.Dead + d.Done + dropped; sum != int64(len(known)) {
				t.Fatalf("seed %d, instant %d: %d events came, %+v are there", seed, now, len(known), d)
			}
			two.Apply(now, &state.Command{Op: state.Depth})
		}
		drain(t, one)
	}
}

// drain works on all that is left, which must come to an end.
func drain(t *testing.T, s *state.Store) {
	t.Helper()
	now := int64(1_000_000)
	for range 1000 {
		for _, lane := range []string{"lane-0", "lane-1"} {
			for _, l := range s.Apply(now, &state.Command{Op: state.Lease, Name: lane, Max: 100, For: time.Millisecond}).Leases {
				if s.Apply(now, &state.Command{Op: state.Done, ID: l.ID, Token: l.Token}).Lost {
					t.Fatalf("%+v is lost at the instant of its lease", l)
				}
			}
		}
		if d := s.Apply(now, &state.Command{Op: state.Depth}).Depth; d.Waiting+d.Leased == 0 {
			return
		}
		now += 1000
	}
	t.Fatal("something is never done")
}

// TestWoke: whoever waits for the next instant hears of an earlier one.
func TestWoke(t *testing.T) {
	s := state.New(0)
	var woken []string
	s.Woke = func(lane string) { woken = append(woken, lane) }
	s.Apply(1, &state.Command{Op: state.Enqueue, Jobs: []queue.Job{{EventID: "a", Lane: "x"}}})
	lease := s.Apply(2, &state.Command{Op: state.Lease, Name: "x", Max: 1, For: time.Second}).Leases[0]
	s.Apply(3, &state.Command{Op: state.Extend, ID: lease.ID, Token: lease.Token, For: time.Microsecond})
	if at, ok := s.Next("x"); !ok || at != 4 {
		t.Errorf("next: got %d, %v; want 4", at, ok)
	}
	if diff := cmp.Diff([]string{"x", "x"}, woken); diff != "" { // enqueued, and made to lapse earlier; the lease itself made it later
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	if _, ok := s.Next("y"); ok {
		t.Error("next of an unknown lane: got one")
	}
}

// TestLettersPaged: pages follow each other without a gap, also when letters leave in between.
func TestLettersPaged(t *testing.T) {
	s := state.New(0)
	var jobs []queue.Job
	for i := range 40 {
		jobs = append(jobs, queue.Job{Provider: "p", EventID: fmt.Sprint(i), DeadOnArrival: "x", Payload: make([]byte, 1<<20)})
	}
	s.Apply(1, &state.Command{Op: state.Enqueue, Jobs: jobs})
	var got []string
	after := int64(-1)
	pages := 0
	for {
		r := s.Apply(2, &state.Command{Op: state.Letters, ID: after})
		if len(r.Letters) == 0 {
			break
		}
		for _, l := range r.Letters {
			got = append(got, l.EventID)
		}
		after = r.Next
		pages++
		s.Apply(2, &state.Command{Op: state.Redrive, Name: "p", EventID: got[0]})
	}
	if len(got) != 40 || pages < 2 {
		t.Errorf("got %d letters on %d pages, want 40 on several", len(got), pages)
	}
}
