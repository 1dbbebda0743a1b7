package alert_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"floodproof/reference/alert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memo remembers what it was told, and when.
type memo struct {
	mu      sync.Mutex
	begin   time.Time
	told    []string
	slow    time.Duration
	fail    error
	flushed bool
}

func (m *memo) Send(ctx context.Context, n alert.Notice) error {
	select {
	case <-time.After(m.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, fmt.Sprintf("%v %s +%d %s", time.Since(m.begin), n.EventID, n.More, n.Reason))
	return m.fail
}

func (m *memo) Flush(context.Context) error {
	m.flushed = true
	return nil
}

// running starts an Alerter; end stops it and waits for it.
func running(t *testing.T, cfg alert.Config) (a *alert.Alerter, end func()) {
	t.Helper()
	a, err := alert.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return a, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func letter(id, lane, reason string) alert.Letter {
	return alert.Letter{Provider: "stripe", EventID: id, Lane: lane, Reason: reason, Attempts: 3, At: time.Now()}
}

// TestRateLimit: the first of a lane and reason are told at once, then one a minute, which is a sum of what came meanwhile; another reason, or lane, has its own.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memo{begin: time.Now()}
		a, end := running(t, alert.Config{Senders: map[string]alert.Sender{"memo": m}, Burst: 2})
		for i := range 15 {
			a.Dead(letter(fmt.Sprint("a", i), "", "downstream answered 422: \"no account of anna@example.org\""))
		}
		a.Dead(letter("b", "", "downstream answered 404"))
		a.Dead(letter("c", "orders", "downstream answered 422"))
		synctest.Wait()
		time.Sleep(90 * time.Second) //nolint:forbidigo // the bubble's clock
		a.Dead(letter("late", "", "downstream answered 422: \"other words\""))
		time.Sleep(3 * time.Minute) //nolint:forbidigo // the bubble's clock
		a.Dead(letter("later", "", "downstream answered 422: \"\""))
		end()
		want := []string{
			`0s a0 +0 downstream answered 422: "…"`, `0s a1 +0 downstream answered 422: "…"`, "0s b +0 downstream answered 404", "0s c +0 downstream answered 422",
			`1m0s a14 +13 downstream answered 422: "…"`, `2m0s late +1 downstream answered 422: "…"`, `4m30s later +0 downstream answered 422: "…"`,
		}
		if diff := cmp.Diff(want, m.told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if !m.flushed {
			t.Error("the sender was not flushed")
		}
		if got, want := a.Counts(), (alert.Counts{Letters: 19, Alerts: 7, Sent: 7}); got != want {
			t.Errorf("counts: got %+v, want %+v", got, want)
		}
	})
}

// TestTotalLimit: a thousand reasons are no way around the limit, and no letter is missing from the sums.
func TestTotalLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memo{begin: time.Now()}
		a, end := running(t, alert.Config{Senders: map[string]alert.Sender{"memo": m}})
		for i := range 1000 {
			a.Dead(letter(fmt.Sprint(i), "", "reason "+string(rune('a'+i%26))+string(rune('a'+i/26))))
			synctest.Wait()
		}
		time.Sleep(10 * time.Minute) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		if n := len(m.told); n < 20 || n > 20+5*10 {
			t.Errorf("told %d alerts in ten minutes, want the 20 at once and at most 5 a minute", n)
		}
		end()
		if c := a.Counts(); c.Letters != 1000 || c.Overflowed != 0 {
			t.Errorf("counts: got %+v, want 1000 letters and none too many", c)
		}
	})
}

// TestStopTellsSums: what was held back is told at the stop.
func TestStopTellsSums(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memo{begin: time.Now()}
		a, end := running(t, alert.Config{Senders: map[string]alert.Sender{"memo": m}, Burst: 1})
		for i := range 3 {
			a.Dead(letter(fmt.Sprint(i), "", "no"))
		}
		end()
		if diff := cmp.Diff([]string{"0s 0 +0 no", "0s 2 +2 no"}, m.told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

// TestNeverBlocks: a receiver that hangs keeps neither the worker nor the other receivers, nor the stop for longer than its grace.
func TestNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs, works := &memo{begin: time.Now(), slow: time.Hour}, &memo{begin: time.Now()}
		a, end := running(t, alert.Config{Senders: map[string]alert.Sender{"hangs": hangs, "works": works}, Every: time.Millisecond, Burst: 10_000})
		begin := time.Now()
		for i := range 2000 {
			a.Dead(letter(fmt.Sprint(i), "", "no"))
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("Dead waited for %v", waited)
		}
		synctest.Wait()
		c := a.Counts()
		if c.Overflowed == 0 || c.Letters != 2000 {
			t.Errorf("counts: got %+v, want some that did not fit", c)
		}
		if len(works.told) == 0 {
			t.Error("the receiver that works was told nothing")
		}
		begin = time.Now()
		end()
		if took := time.Since(begin); took != alert.DefaultGrace {
			t.Errorf("the stop took %v, want the grace of %v", took, alert.DefaultGrace)
		}
	})
}

func TestFailuresAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, end := running(t, alert.Config{Senders: map[string]alert.Sender{"memo": &memo{fail: errors.New("refused")}}})
		a.Dead(letter("a", "", "no"))
		end()
		if got, want := a.Counts(), (alert.Counts{Letters: 1, Alerts: 1, Failed: 1}); got != want {
			t.Errorf("counts: got %+v, want %+v", got, want)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]alert.Config{
		"a negative time":  {Every: -1},
		"a negative burst": {Burst: -1},
		"a nil sender":     {Senders: map[string]alert.Sender{"none": nil}},
	} {
		if _, err := alert.New(cfg); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestRedact(t *testing.T) {
	for _, tt := range []struct{ reason, want string }{
		{"no such order", "no such order"},
		{`given up after 20 attempts: downstream answered 500: "anna \"x\" lopez"`, `given up after 20 attempts: downstream answered 500: "…"`},
		{`downstream answered 500: "cut off in the mid`, `downstream answered 500: "…"`},
		{`answered "cut off after \`, `answered "…"`},
		{`"a" and "b"`, `"…" and "…"`},
		{"bell\a and \u202eturn", "bell  and  turn"},
	} {
		if got := alert.Redact(tt.reason); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.reason, got, tt.want)
		}
	}
}
