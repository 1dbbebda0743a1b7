package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
)

// plain is a day of acme alone with nothing injected.
func plain(schedule Schedule, events int) Traffic {
	return Traffic{Seed: 1, RunID: "run", Events: events, Schedule: schedule, Mix: []Share{share(acme(), 1)}, VersionsPerResource: 1}
}

// mustRun runs a generator to its end.
func mustRun(t *testing.T, g *Generator) {
	t.Helper()
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// due are the due times of a delivery's attempts, and start checks that each was sent at that instant: in virtual time nothing is late.
func due(t *testing.T, attempts []ledger.Attempt) []time.Duration {
	t.Helper()
	var got []time.Duration
	for _, a := range attempts {
		if a.Start != a.Due && !a.Blocked {
			t.Errorf("attempt %d of delivery %d: due %v, sent %v", a.Try, a.Delivery, a.Due, a.Start)
		}
		got = append(got, a.Due)
	}
	return got
}

func TestRunMapsTheDayThroughSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schedule := at{0, time.Hour, 8*time.Hour - 36*time.Second, 8 * time.Hour, 8*time.Hour + 30*time.Minute, 9 * time.Hour, 23 * time.Hour}
		g, books := bubble(t, plain(schedule, len(schedule)), threeParts(), answer(200, time.Millisecond))
		var calls []string
		g.Begin = func(_ context.Context, i int) error {
			calls = append(calls, fmt.Sprintf("begin %d at %v", i, time.Since(g.Start)))
			return nil
		}
		g.End = func(_ context.Context, i int) error {
			calls = append(calls, fmt.Sprintf("end %d at %v", i, time.Since(g.Start)))
			<-time.After(3 * time.Second) // the backlog
			return nil
		}
		mustRun(t, g)
		wantCalls := []string{
			"begin 0 at 0s", "end 0 at 8s", "begin 1 at 11s", "end 1 at 1m11s", "begin 2 at 1m14s", "end 2 at 1m44s", "begin 3 at 1m47s", "end 3 at 1m47s",
		}
		if diff := cmp.Diff(wantCalls, calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		want := []time.Duration{0, time.Second, 7990 * time.Millisecond, 11 * time.Second, 41 * time.Second, 74 * time.Second, 102 * time.Second}
		if diff := cmp.Diff(want, due(t, books.attempts)); diff != "" {
			t.Errorf("due (-want +got):\n%s", diff)
		}
		var segments []uint8
		for _, a := range books.attempts {
			segments = append(segments, a.Segment)
		}
		if diff := cmp.Diff([]uint8{0, 0, 0, 1, 1, 2, 2}, segments); diff != "" {
			t.Errorf("segments (-want +got):\n%s", diff)
		}
	})
}

// unreachable is a transport that gets no connection.
type unreachable struct{}

func (unreachable) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, errors.Join(errors.New("connection refused"), r.Body.Close())
}

func TestBlockedAttemptsWaitInOrder(t *testing.T) {
	for _, slots := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// Twenty events at once, each answered after a second.
				g, books := bubble(t, plain(evenly(0), 20), wholeDay(3600), answer(200, time.Second))
				g.MaxInFlight = slots
				mustRun(t, g)
				for n := range uint32(20) {
					a := books.of(n)[0]
					want := ledger.Attempt{
						Delivery: n, Try: 1, Start: time.Duration(int(n)/slots) * time.Second, Done: time.Duration(int(n)/slots+1) * time.Second,
						Status: 200, Result: ledger.OK, Then: ledger.Settled, Blocked: int(n) >= slots,
					}
					if diff := cmp.Diff(want, a); diff != "" {
						t.Errorf("attempt of %d (-want +got):\n%s", n, diff)
					}
				}
				if p := g.Progress(); p.Blocked != int64(20-slots) || p.Waiting != 0 || p.Sent != 20 {
					t.Errorf("progress %+v", p)
				}
			})
		})
	}
}

// TestBlockedAreSentBeforeTheSegmentEnds: a segment ends when all that was due in it is on the wire, however long that takes.
func TestBlockedAreSentBeforeTheSegmentEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments := []Segment{{Name: "one", Until: time.Hour, Scale: 3600}, {Name: "two", From: time.Hour, Until: 2 * time.Hour, Scale: 3600}}
		g, books := bubble(t, plain(evenly(time.Minute), 60), segments, answer(200, time.Second))
		g.MaxInFlight = 1
		var ended time.Duration
		g.End = func(_ context.Context, i int) error {
			if i == 0 {
				ended = time.Since(g.Start)
			}
			return nil
		}
		mustRun(t, g)
		if want := 59 * time.Second; ended != want {
			t.Errorf("the segment ended after %v, want %v", ended, want)
		}
		for _, a := range books.attempts {
			if a.Segment != 0 {
				t.Errorf("attempt %+v, want segment 0", a)
			}
		}
	})
}

func TestCancelStopsAndRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var sent atomic.Int64
		slow := receiver(func(r *http.Request, _ []byte) (int, time.Duration, http.Header) {
			if sent.Add(1) == 10 {
				cancel()
			}
			if r.Header.Get("X-Attempt") != "1" {
				return 200, 0, nil
			}
			return 200, 400 * time.Millisecond, nil
		})
		hang := answer(200, time.Hour)
		to := transportFunc(func(r *http.Request) (*http.Response, error) {
			if sent.Load() == 8 {
				sent.Add(1)
				return hang.RoundTrip(r)
			}
			return slow.RoundTrip(r)
		})
		g, books := bubble(t, plain(evenly(10*time.Millisecond), 1000), wholeDay(1), to)
		if err := g.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want %v", err, context.Canceled)
		}
		if got := time.Since(g.Start); got != 90*time.Millisecond+grace {
			t.Errorf("Run returned after %v, want the grace of %v behind the cancel at 90 ms", got, grace)
		}
		ok, cut := 0, 0
		for _, a := range books.attempts {
			switch {
			case a.Result == ledger.OK && a.Then == ledger.Settled:
				ok++
			case a.Result == ledger.Unanswered && a.Then == ledger.Retry:
				cut++
			default:
				t.Errorf("attempt %+v", a)
			}
		}
		if ok != 9 || cut != 1 || sent.Load() != 10 {
			t.Errorf("%d delivered, %d cut off, %d sent; want 9, 1, 10", ok, cut, sent.Load())
		}
	})
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCancelEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		g, _ := bubble(t, plain(at{0}, 1), wholeDay(24*3600), answer(200, 0))
		g.End = func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return errors.New("the backlog is not empty")
		}
		if err := g.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run = %v, want %v", err, context.DeadlineExceeded)
		}
		if got := time.Since(g.Start); got != 30*time.Second {
			t.Errorf("Run returned after %v, want 30 s", got)
		}
	})
}

func TestErrorsOfHooksEndTheRun(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		hook string
		want string
		sent int
	}{
		{"begin", "begin segment 1: broken", 1},
		{"end", "end segment 0: broken", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			g, books := bubble(t, plain(at{0, 9 * time.Hour}, 2), threeParts(), answer(200, 0))
			if tt.hook == "end" {
				g.End = func(context.Context, int) error { return broken }
			} else {
				g.Begin = func(_ context.Context, i int) error {
					if i == 1 {
						return broken
					}
					return nil
				}
			}
			err := g.Run(t.Context())
			if !errors.Is(err, broken) || err.Error() != tt.want {
				t.Errorf("Run = %v, want %q", err, tt.want)
			}
			if len(books.attempts) != tt.sent {
				t.Errorf("%d attempts, want %d", len(books.attempts), tt.sent)
			}
		})
	}
}

// TestAnswersArriveDuringAPause: End waits for a backlog that only shrinks when answers are taken in meanwhile.
func TestAnswersArriveDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, books := bubble(t, plain(at{8*time.Hour - time.Second}, 1), threeParts(), answer(503, 4*time.Second))
		g.Traffic.Mix[0].Provider.Delays = []time.Duration{0}
		g.End = func(_ context.Context, i int) error {
			<-time.After(10 * time.Second)
			if got := g.Progress(); i == 0 && (got.InFlight != 0 || got.PendingRetries != 1 || got.DayTime != 8*time.Hour) {
				t.Errorf("progress at the end of the pause: %+v", got)
			}
			return nil
		}
		mustRun(t, g)
		got := books.of(0)
		if len(got) != 2 || got[1].Due != 18*time.Second || got[1].Segment != 1 {
			t.Errorf("attempts %+v, want the second at the begin of segment 1", got)
		}
	})
}

func TestEverythingIsAccountedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := traffic(3000)
		in.Schedule = evenly(10 * time.Second)
		var n atomic.Int64
		moody := receiver(func(*http.Request, []byte) (int, time.Duration, http.Header) {
			switch n.Add(1) % 10 {
			case 0:
				return 503, 0, nil
			case 1:
				return 200, time.Minute, nil
			}
			return 200, 20 * time.Millisecond, nil
		})
		g, books := bubble(t, in, threeParts(), moody)
		g.MaxInFlight = 20
		mustRun(t, g)
		if got, want := int64(len(books.attempts)), n.Load(); got != want {
			t.Errorf("%d attempts in the books, %d requests at the receiver", got, want)
		}
		last := map[uint32]ledger.Attempt{}
		for _, a := range books.attempts {
			if before, ok := last[a.Delivery]; ok && (a.Try != before.Try+1 || before.Then != ledger.Retry || a.Due < before.Done+attemptGap) {
				t.Fatalf("attempt %+v follows %+v", a, before)
			}
			if a.Start < a.Due || a.Done < a.Start {
				t.Fatalf("attempt %+v goes back in time", a)
			}
			last[a.Delivery] = a
		}
		for d, a := range last {
			if a.Then == ledger.Retry {
				t.Errorf("delivery %d was cut off: %+v", d, a)
			}
		}
		if len(last) != len(books.deliveries) {
			t.Errorf("%d deliveries, %d with attempts", len(books.deliveries), len(last))
		}
		want := Progress{Planned: 3000, Born: 3000, Sent: n.Load(), Segment: 3}
		got := g.Progress()
		got.Blocked, got.DayTime = 0, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	})
}

func TestRunRefuses(t *testing.T) {
	valid := func() *Generator {
		return &Generator{Traffic: plain(evenly(time.Second), 10), Segments: threeParts(), Books: discard{}, Transport: answer(200, 0)}
	}
	tests := map[string]func(*Generator){
		"books: nil":                         func(g *Generator) { g.Books = nil },
		"max in flight: -1":                  func(g *Generator) { g.MaxInFlight = -1 },
		"tail scale: -3":                     func(g *Generator) { g.TailScale = -3 },
		"segments: 0 of them":                func(g *Generator) { g.Segments = nil },
		`segment "morning": begins at 7h`:    func(g *Generator) { g.Segments[1].From = 7 * time.Hour },
		`segment "rest": from 9h`:            func(g *Generator) { g.Segments[2].Scale = 0 },
		"not all of which lies in a segment": func(g *Generator) { g.Traffic.Schedule = evenly(10 * time.Hour) },
		"events: 0, want":                    func(g *Generator) { g.Traffic.Events = 0 },
		"schedule: nil":                      func(g *Generator) { g.Traffic.Schedule = nil },
		"versions per resource: -1":          func(g *Generator) { g.Traffic.VersionsPerResource = -1 },
		"mix: 0 providers":                   func(g *Generator) { g.Traffic.Mix = nil },
		"mix: share 0 has no provider":       func(g *Generator) { g.Traffic.Mix[0].Provider = nil },
		"mix: acme has the weight -1":        func(g *Generator) { g.Traffic.Mix[0].Weight = -1 },
		"mix: all weights are 0":             func(g *Generator) { g.Traffic.Mix[0].Weight = 0 },
		"mix: acme has no secret":            func(g *Generator) { g.Traffic.Mix[0].Secrets = nil },
		"mix: acme has no time-out":          func(g *Generator) { g.Traffic.Mix[0].Provider.Timeout = 0 },
		"latest: acme cannot tell":           func(g *Generator) { g.Traffic.Latest, g.Traffic.Mix[0].Provider.Type = []string{"x"}, nil },
		"disable endpoints: providers give":  func(g *Generator) { g.DisableEndpoints, g.TailScale = true, 1 },
		"inject: cut body is -1":             func(g *Generator) { g.Traffic.Inject.CutBody = -1 },
		"inject: oversized bytes: -1":        func(g *Generator) { g.Traffic.Inject.OversizedBytes = -1 },
		"mash: share is 2":                   func(g *Generator) { g.Traffic.Mash = Mash{2, 8, time.Second} },
		"mash: 1 updates are no row":         func(g *Generator) { g.Traffic.Mash = Mash{0.5, 1, time.Second} },
		"mash: 8 updates within 0s":          func(g *Generator) { g.Traffic.Mash = Mash{0.5, 8, 0} },
		"inject: forged is 1.5":              func(g *Generator) { g.Traffic.Inject.Forged = 1.5 },
		"parse URL of acme":                  func(g *Generator) { g.Traffic.Mix[0].URL = "http://%zz" },
	}
	for want, spoil := range tests {
		t.Run(want, func(t *testing.T) {
			g := valid()
			spoil(g)
			if err := g.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Run = %v, want %q", err, want)
			}
		})
	}
}

// TestRetriesOfBlockedAttemptsAreNotBlocked: each attempt is blocked by itself.
func TestRetriesOfBlockedAttemptsAreNotBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := receiver(func(r *http.Request, _ []byte) (int, time.Duration, http.Header) {
			if r.Header.Get("X-Attempt") == "1" {
				return 503, time.Second, nil
			}
			return 200, 0, nil
		})
		g, books := bubble(t, plain(at{0, 0, 24 * time.Minute}, 3), wholeDay(60), first)
		g.Traffic.Mix[0].Provider.Delays = []time.Duration{10 * time.Minute}
		g.MaxInFlight = 1
		mustRun(t, g)
		for _, a := range books.attempts {
			if want := a.Delivery == 1 && a.Try == 1; a.Blocked != want {
				t.Errorf("attempt %+v: blocked, want %t", a, want)
			}
		}
	})
}

// TestCancelLeavesBlockedUnsent: what waits for a slot when the run is interrupted is not sent in the grace.
func TestCancelLeavesBlockedUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		g, books := bubble(t, plain(evenly(0), 10), wholeDay(60), answer(200, 100*time.Millisecond))
		g.MaxInFlight = 2
		if err := g.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run = %v, want %v", err, context.DeadlineExceeded)
		}
		if len(books.attempts) != 2 || len(books.deliveries) != 10 {
			t.Errorf("%d attempts of %d deliveries, want 2 of 10", len(books.attempts), len(books.deliveries))
		}
	})
}

// endless is a response body without end; it stalls after so many bytes.
type endless struct {
	read, stall int
	closed      chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	if e.stall > 0 && e.read >= e.stall {
		<-e.closed
		return 0, io.ErrClosedPipe
	}
	e.read += len(p)
	return len(p), nil
}

func (e *endless) Close() error { return nil }

func TestDrainIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		stall int
		want  time.Duration
	}{
		"a body without end": {0, 0},
		"a body that stalls": {100, drainTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := &endless{stall: tt.stall, closed: make(chan struct{})}
				to := transportFunc(func(r *http.Request) (*http.Response, error) {
					context.AfterFunc(r.Context(), func() { close(body.closed) })
					return &http.Response{StatusCode: 200, Body: body, ContentLength: -1}, nil
				})
				g, books := bubble(t, plain(at{0}, 1), wholeDay(24*3600*1000), to)
				mustRun(t, g)
				if a := books.attempts[0]; a.Result != ledger.OK || a.Done != 0 {
					t.Errorf("attempt %+v, want ok at once", a)
				}
				if body.read > 2*drainBytes {
					t.Errorf("%d bytes were read, want about %d", body.read, drainBytes)
				}
				if got := time.Since(g.Start).Round(time.Second); got != tt.want {
					t.Errorf("the slot was taken for %v, want %v", got, tt.want)
				}
			})
		})
	}
}
