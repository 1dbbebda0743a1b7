package tape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script is a source in memory: request i came at offsets[i] and has the path /i.
type script struct {
	offsets []time.Duration
	leftOut map[int]bool
	broken  map[int]error
}

func (s script) Len() int                   { return len(s.offsets) }
func (s script) Offset(i int) time.Duration { return s.offsets[i] }

func (s script) Load(i int) (Request, error) {
	return Request{Path: fmt.Sprint("/", i), Offset: s.offsets[i], Body: Body{LeftOut: s.leftOut[i]}}, s.broken[i]
}

// fakeTarget answers after a time and remembers when it was asked for what.
type fakeTarget struct {
	start time.Time
	takes time.Duration
	// status is what a path is answered with, 200 if it has none.
	status map[string]int

	mu    sync.Mutex
	began []string
	most  int
	busy  int
}

func (f *fakeTarget) Transmit(ctx context.Context, r Request) Answer {
	f.mu.Lock()
	f.busy++
	f.most = max(f.most, f.busy)
	f.began = append(f.began, fmt.Sprint(r.Path, " ", time.Since(f.start)))
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.busy--; f.mu.Unlock() }()
	select {
	case <-time.After(f.takes):
	case <-ctx.Done():
		return Answer{At: time.Now(), Err: ctx.Err()}
	}
	status, ok := f.status[r.Path]
	if !ok {
		status = 200
	}
	return Answer{At: time.Now(), Status: status, OK: status == 200, Unsigned: status == 401}
}

// sorted are the requests that the target was asked for, in the order of their paths, as those of one instant have none.
func (f *fakeTarget) sorted() []string {
	return slices.Sorted(slices.Values(f.began))
}

func seconds(s ...float64) []time.Duration {
	var d []time.Duration
	for _, x := range s {
		d = append(d, time.Duration(x*float64(time.Second)))
	}
	return d
}

func TestReplaySpacing(t *testing.T) {
	tests := []struct {
		name   string
		player Player
		want   []string
	}{
		{"as recorded", Player{}, []string{"/0 0s", "/1 1s", "/2 1s", "/3 1.5s", "/4 1h0m0s"}},
		{"scale", Player{Scale: 10}, []string{"/0 0s", "/1 100ms", "/2 100ms", "/3 150ms", "/4 6m0s"}},
		{"slower", Player{Scale: 0.5}, []string{"/0 0s", "/1 2s", "/2 2s", "/3 3s", "/4 2h0m0s"}},
		{"rate", Player{Rate: 4, Scale: 7}, []string{"/0 0s", "/1 250ms", "/2 500ms", "/3 750ms", "/4 1s"}},
		{"for", Player{For: 90 * time.Minute / 60}, []string{"/0 0s", "/1 1s", "/2 1s", "/3 1.5s"}},
		{"for ends before what is due then", Player{For: time.Second}, []string{"/0 0s"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// The recording began ten seconds before the first request.
				source := script{offsets: seconds(10, 11, 11, 11.5, 3610)}
				target := &fakeTarget{start: time.Now(), takes: 5 * time.Second} // which delays nothing
				sum, err := tt.player.Run(t.Context(), source, target)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, target.sorted()); diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
				n := len(tt.want)
				if sum.Requests != 5 || sum.Sent != n || sum.OK != n || sum.LeftOut != 5-n || sum.NotSent != 0 || sum.Late != 0 || sum.Blocked != 0 || !sum.Passed() {
					t.Errorf("%+v, want %d sent and answered", sum, n)
				}
				if l := sum.Latency(); l.Count != int64(n) || *l.P50 < 4990 || *l.Max > 5010 {
					t.Errorf("latency %v of %d, want five seconds of %d", *l.P50, l.Count, n)
				}
			})
		})
	}
}

// TestReplayBlocks has more due than may be under way: what waits is sent in order as slots free up, and measured from its due time.
func TestReplayBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := script{offsets: seconds(0, 0, 0, 1, 1, 20)}
		target := &fakeTarget{start: time.Now(), takes: 4 * time.Second}
		told := 0
		p := Player{MaxInFlight: 2, Progress: func(Summary) { told++ }}
		sum, err := p.Run(t.Context(), source, target)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"/0 0s", "/1 0s", "/2 4s", "/3 4s", "/4 8s", "/5 20s"}
		if diff := cmp.Diff(want, target.sorted()); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
		if sum.Blocked != 3 || sum.Late != 0 || target.most != 2 || told == 0 {
			t.Errorf("blocked %d, late %d, under way %d, told %d times; want 3, 0, 2 and some", sum.Blocked, sum.Late, target.most, told)
		}
		// 4, 4, 8, 7, 11 and 4 seconds from due.
		if l, lag := sum.Latency(), sum.Lag(); *l.Max < 10_990 || *l.Max > 11_020 || lag.Count != 3 {
			t.Errorf("longest latency %v ms, %d samples of the lag; want 11 s and 3", *l.Max, lag.Count)
		}
	})
}

// slowSource takes its time to read a request that was not read ahead.
type slowSource struct{ script }

func (s slowSource) Load(i int) (Request, error) {
	time.Sleep(50 * time.Millisecond) //nolint:forbidigo // virtual time: the disk is slow, and nothing else is there to wait for
	return s.script.Load(i)
}

// TestReplayIsLate has a slow disk: the first request could not be read ahead, the second could.
func TestReplayIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &fakeTarget{start: time.Now()}
		sum, err := new(Player).Run(t.Context(), slowSource{script{offsets: seconds(0, 1)}}, target)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"/0 50ms", "/1 1s"}, target.sorted()); diff != "" || sum.Late != 1 || sum.Blocked != 0 {
			t.Errorf("late %d, blocked %d, want 1 and 0; sent (-want +got):\n%s", sum.Late, sum.Blocked, diff)
		}
	})
}

func TestReplayCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := script{offsets: seconds(0, 1, 2, 3, 4), leftOut: map[int]bool{1: true}}
		target := &fakeTarget{start: time.Now(), takes: time.Second, status: map[string]int{"/0": 401, "/2": 503, "/3": 503}}
		sum, err := new(Player).Run(t.Context(), source, target)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Sent != 4 || sum.OK != 1 || sum.Refused[503] != 2 || sum.Refused[401] != 1 || sum.Skipped != 1 || sum.Unsigned != 1 || sum.Passed() {
			t.Errorf("%+v", sum)
		}
		if l := sum.Latency(); l.Count != 1 {
			t.Errorf("%d samples of the latency, want that of the success only", l.Count)
		}
		text, err := json.Marshal(sum)
		if err != nil {
			t.Fatal(err)
		}
		var shown struct {
			Passed  bool
			Sent    int
			Refused map[string]int
			Latency struct{ P50 *float64 } `json:"latency_ms"`
		}
		if err := json.Unmarshal(text, &shown); err != nil || shown.Passed || shown.Sent != 4 || shown.Refused["503"] != 2 || *shown.Latency.P50 < 999 {
			t.Errorf("as JSON %s, error %v", text, err)
		}
	})
}

// TestReplayIsInterrupted sends nothing any more, waits half a second for answers, and cuts the others off.
func TestReplayIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1900*time.Millisecond)
		defer cancel()
		source := script{offsets: seconds(0, 1, 1.5, 2, 3)}
		target := &fakeTarget{start: time.Now(), takes: 1200 * time.Millisecond}
		sum, err := new(Player).Run(ctx, source, target)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of the context", err)
		}
		if sum.Sent != 3 || sum.OK != 2 || sum.Unanswered != 1 || sum.NotSent != 2 || sum.Passed() || sum.Elapsed != 2400*time.Millisecond {
			t.Errorf("%+v, want 3 sent, 2 answered in the grace, 2 not sent", sum)
		}
		if !errors.Is(sum.FirstError, context.Canceled) {
			t.Errorf("first error %v", sum.FirstError)
		}
	})
}

func TestReplayOfABrokenRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("input/output error")
		source := script{offsets: seconds(0, 1, 2), broken: map[int]error{1: lost}}
		sum, err := new(Player).Run(t.Context(), source, &fakeTarget{start: time.Now()})
		if !errors.Is(err, lost) || sum.Sent != 1 || sum.Passed() {
			t.Errorf("error %v, %+v, want that of the disk and one request sent", err, sum)
		}
	})
	for _, p := range []Player{{Scale: -1}, {Rate: -1}, {For: -1}, {MaxInFlight: -1}} {
		if _, err := p.Run(t.Context(), script{}, nil); err == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
	if sum, err := new(Player).Run(t.Context(), script{}, nil); err != nil || sum.Passed() {
		t.Errorf("an empty recording: error %v, passed %v; want that nothing was shown", err, sum.Passed())
	}
}
