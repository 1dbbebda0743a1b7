package reference

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"floodproof/reference/queue"
)

func TestBackoffDelay(t *testing.T) {
	for _, tc := range []struct {
		b       Backoff
		attempt int
		most    time.Duration
	}{
		{Backoff{}, 1, 500 * time.Millisecond}, {Backoff{}, 2, time.Second}, {Backoff{}, 6, 16 * time.Second}, {Backoff{}, 7, 30 * time.Second},
		{Backoff{}, 1000, 30 * time.Second}, {Backoff{}, math.MaxInt, 30 * time.Second}, {Backoff{}, 0, 500 * time.Millisecond}, {Backoff{}, -5, 500 * time.Millisecond},
		{Backoff{Base: time.Second, Max: 3 * time.Second}, 2, 2 * time.Second}, {Backoff{Base: time.Second, Max: 3 * time.Second}, 3, 3 * time.Second},
		{Backoff{Base: time.Minute, Max: time.Second}, 1, time.Second}, {Backoff{Base: 1, Max: math.MaxInt64}, 63, 1 << 62},
		{Backoff{Base: 1}, 1, 1}, {Backoff{Base: -time.Second}, 3, 0},
	} {
		least, most := time.Duration(math.MaxInt64), time.Duration(0)
		r := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			d := tc.b.Delay(tc.attempt, r)
			least, most = min(least, d), max(most, d)
		}
		if half := tc.most / 2; least < half || most > tc.most || tc.most > 1000 && (least > half+half/20 || most < tc.most-half/20) {
			t.Errorf("%+v, attempt %d: delays from %v to %v, want all of [%v, %v]", tc.b, tc.attempt, least, most, half, tc.most)
		}
	}
}

func TestBackoffIsPure(t *testing.T) {
	p := policy{maxAttempts: 5, seed: 42}
	lease := queue.Lease{ID: 7, Attempt: 3, Job: queue.Job{ReceivedAt: signingNow}}
	failed := errors.New("down")
	first := p.decide(lease, failed, signingNow, false)
	if again := p.decide(lease, failed, signingNow, false); again != first {
		t.Errorf("the same question twice: %+v, then %+v", first, again)
	}
	different := 0
	for id := int64(8); id < 18; id++ {
		lease.ID = id
		if p.decide(lease, failed, signingNow, false).After() != first.After() {
			different++
		}
	}
	if different < 9 {
		t.Errorf("only %d of 10 other jobs wait differently: they would come back together", different)
	}
}

func TestPolicyDecides(t *testing.T) {
	p := policy{maxAttempts: 3, giveUpAfter: time.Hour}
	failed, throttled := errors.New("down"), &RetryAfterError{After: time.Second, Everyone: true}
	for _, tc := range []struct {
		name    string
		attempt int
		age     time.Duration
		err     error
		stopped bool
		want    string
	}{
		{"first failure", 1, 0, failed, false, "retry"},
		{"attempts spent, too young", 30, 59 * time.Minute, failed, false, "retry"},
		{"old, attempts left", 2, 99 * time.Hour, failed, false, "retry"},
		{"both spent", 3, time.Hour, failed, false, "dead"},
		{"throttled for long", 3000, 59 * time.Minute, throttled, false, "retry"},
		{"throttled for ever", 3, time.Hour, throttled, false, "dead"},
		{"stopped", 3, time.Hour, failed, true, "retry"},
		{"done at the stop", 1, 0, nil, true, "done"},
		{"permanent at the stop", 1, 0, Permanent(failed), true, "dead"},
		{"permanent wins over a wait", 1, 0, Permanent(throttled), false, "dead"},
		{"done at last", 3, time.Hour, nil, false, "done"},
	} {
		lease := queue.Lease{Attempt: tc.attempt, Job: queue.Job{ReceivedAt: signingNow.Add(-tc.age)}}
		o := p.decide(lease, tc.err, signingNow, tc.stopped)
		got := map[bool]string{o.IsDone(): "done", o.IsRetry(): "retry", o.IsDead(): "dead"}[true]
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestPermanent(t *testing.T) {
	cause := errors.New("cause")
	if err := Permanent(cause); !errors.Is(err, ErrPermanent) || !errors.Is(err, cause) || err.Error() != "cause" {
		t.Errorf("Permanent: got %v", err)
	}
	if Permanent(nil) != nil {
		t.Error("Permanent(nil) is an error")
	}
	if errors.Is(cause, ErrPermanent) {
		t.Error("an ordinary error is permanent")
	}
}

func TestReasonIsBounded(t *testing.T) {
	for _, text := range []string{"", "short", "bad \xff byte", strings.Repeat("é", maxReason), "x" + strings.Repeat("é", maxReason)} {
		got := reason(errors.New(text))
		if !utf8.ValidString(got) || len(got) > maxReason+3 || len(text) < maxReason && len(got) < len(text) {
			t.Errorf("%.20q: got %d bytes, valid %v", text, len(got), utf8.ValidString(got))
		}
	}
}
