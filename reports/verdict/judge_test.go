package verdict_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// planted is a pipeline of ten thousand events with a defect: every thousandth event is dropped, doubled, or both kinds at once.
func planted(drop, double bool) *book {
	b := newBook()
	for i := range 10_000 {
		e := b.event(fmt.Sprintf("evt_%05d", i), 0)
		at := time.Duration(i) * 2 * ms
		b.ack(e, at)
		if drop && i%1000 == 7 {
			continue
		}
		b.effect(e, at+20*ms)
		if double && i%1000 == 13 {
			b.effect(e, at+30*ms)
		}
	}
	return b
}

func thousandths(offset int) []string {
	var ids []string
	for i := offset; i < 10_000; i += 1000 {
		ids = append(ids, fmt.Sprintf("evt_%05d", i))
	}
	return ids
}

// TestPlantedBugs: the judge names exactly the events that were harmed. With both defects the number of effects is that of the events, so that
// whoever only counts sees nothing.
func TestPlantedBugs(t *testing.T) {
	tests := []struct {
		name         string
		drop, double bool
		want         verdict.Outcome
	}{
		{"none", false, false, verdict.Pass},
		{"drops", true, false, verdict.Fail},
		{"doubles", false, true, verdict.Fail},
		{"both", true, true, verdict.Fail},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			v := judge(t, planted(tc.drop, tc.double))
			if v.Outcome != tc.want {
				t.Errorf("outcome %s, want %s", v.Outcome, tc.want)
			}
			var lost, doubled []string
			if tc.drop {
				lost = thousandths(7)
			}
			if tc.double {
				doubled = thousandths(13)
			}
			if tc.drop && tc.double && v.Counts.Effects != v.Counts.Events {
				t.Errorf("%d effects of %d events, want as many", v.Counts.Effects, v.Counts.Events)
			}
			for name, want := range map[string][]string{"no-loss": lost, "no-double-effect": doubled} {
				if diff := cmp.Diff(append([]string{}, want...), finding(t, v, name).Examples); diff != "" {
					t.Errorf("%s names (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// TestPipe: a ledger that cannot be read twice gets the same verdict, ids included; so does one that does not begin at the reader's start.
func TestPipe(t *testing.T) {
	data := planted(true, true).bytes(t)
	want := judge(t, planted(true, true))
	for name, in := range map[string]func() io.Reader{
		"pipe": func() io.Reader { return io.MultiReader(bytes.NewReader(data)) },
		"offset": func() io.Reader {
			r := bytes.NewReader(append([]byte("before"), data...))
			if _, err := r.Seek(6, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			return r
		},
	} {
		got, err := verdict.Judge(in(), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCutAnywhere: wherever a passing ledger is cut, nothing passes and nothing is called lost.
func TestCutAnywhere(t *testing.T) {
	b := newBook()
	b.good(3000)
	data := b.bytes(t)
	if v := judge(t, b); v.Outcome != verdict.Pass {
		t.Fatalf("whole ledger: %s, want pass", v.Outcome)
	}
	judged := 0
	for n := 0; n < len(data); n += 499 {
		v, err := verdict.Judge(bytes.NewReader(data[:n]), int64(n))
		if err != nil {
			continue // not even a header
		}
		judged++
		requireSound(t, v)
		if v.Outcome != verdict.Unknown || v.Counts.Lost != 0 || finding(t, v, "ledger-complete").Outcome != verdict.Unknown {
			t.Fatalf("cut at %d of %d: outcome %s, %d lost", n, len(data), v.Outcome, v.Counts.Lost)
		}
	}
	if judged < 50 {
		t.Errorf("only %d cuts were judged", judged)
	}
}

// TestDamagedAnywhere: a flipped bit never passes.
func TestDamagedAnywhere(t *testing.T) {
	b := newBook()
	b.good(300)
	data := b.bytes(t)
	for n := 0; n < len(data); n += 61 {
		bad := slices.Clone(data)
		bad[n] ^= 0x10
		v, err := verdict.Judge(bytes.NewReader(bad), int64(len(bad)))
		if err == nil && v.Outcome == verdict.Pass {
			t.Fatalf("bit flipped in byte %d: pass", n)
		}
	}
}

func TestInterrupted(t *testing.T) {
	b := newBook()
	b.good(10)
	b.end.Interrupted = true
	v := judge(t, b)
	if v.Outcome != verdict.Unknown || !v.Interrupted || finding(t, v, "drained").Outcome != verdict.Pass {
		t.Errorf("outcome %s, interrupted %v, drained %+v; want unknown, true, pass", v.Outcome, v.Interrupted, finding(t, v, "drained"))
	}
	b.effect(3, 5*s)
	if v := judge(t, b); v.Outcome != verdict.Fail {
		t.Errorf("with a double effect: %s, want fail", v.Outcome)
	}
}

// TestInterruptedBeforeItWasSent: what waited for a free slot when the run was interrupted would have been sent.
func TestInterruptedBeforeItWasSent(t *testing.T) {
	for _, interrupted := range []bool{true, false} {
		b := newBook()
		b.header.Expect.Delivered = true
		b.good(10)
		b.deliver(ledger.Genuine, stripe, b.event("waits", 0), 1)
		b.end.Interrupted = interrupted
		v := judge(t, b)
		want, outcome := verdict.Counts{Undelivered: 1, Suppressed: 1}, verdict.Fail
		if interrupted {
			want, outcome = verdict.Counts{CutOff: 1}, verdict.Unknown
		}
		if got := (verdict.Counts{CutOff: v.Counts.CutOff, Undelivered: v.Counts.Undelivered, Suppressed: v.Counts.Suppressed}); got != want || v.Outcome != outcome {
			t.Errorf("interrupted %v: got %s and %+v, want %s and %+v", interrupted, v.Outcome, got, outcome, want)
		}
	}
}

func TestJudgeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	data := planted(true, false).bytes(t)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := verdict.JudgeFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *v.Resources.LedgerBytesPerEvent, float64(len(data))/10_000; got != want {
		t.Errorf("%v bytes an event, want %v", got, want)
	}
	for _, bad := range []string{filepath.Join(t.TempDir(), "missing"), "judge_test.go"} {
		if v, err := verdict.JudgeFile(bad); err == nil || v != nil {
			t.Errorf("judged %s: %v, %v; want no verdict and an error", bad, v, err)
		}
	}
}
