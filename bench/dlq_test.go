package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// hostilePayload is not text, and would move the cursor, ring, and turn the direction of writing.
var hostilePayload = []byte("{\"id\":\"\x1b[2J\a\xff\u202e\"}\n")

// scriptCommands are what scripts can do besides: seedqueue DIR makes a queue with events in every state.
func scriptCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	all := maps.Clone(recordCommands())
	all["seedqueue"] = func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Check(seedQueue(context.Background(), ts.MkAbs(args[0])))
	}
	return all
}

// seedQueue makes the queue of a pipeline that was in use: done events, dead letters with three reasons in two lanes, and one that waits.
func seedQueue(ctx context.Context, dir string) (err error) {
	q, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if failure := q.Close(ctx); err == nil {
			err = failure
		}
	}()
	at := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	event := func(id, kind, lane string) queue.Job {
		at = at.Add(time.Minute)
		return queue.Job{Provider: "stripe", EventID: id, Type: kind, Lane: lane, DeliveryID: "dlv_" + id, Resource: "in_1", Version: 3, Payload: []byte(`{"id":"` + id + `"}`), ReceivedAt: at}
	}
	hostile := event("evt_\x1b[31m", "invoice.paid", "")
	hostile.Payload = hostilePayload
	same := event("evt_dead1", "orders/create", "")
	same.Provider, same.DeadOnArrival = "shopify", "item 3 is malformed"
	jobs := []queue.Job{event("evt_done1", "invoice.paid", ""), event("evt_done2", "order.created", "orders"), event("evt_dead1", "invoice.paid", ""), event("evt_dead2", "order.created", "orders"), hostile, same}
	if err := q.Enqueue(ctx, jobs...); err != nil {
		return err
	}
	for _, lane := range []string{"", "orders"} {
		for left := 5; left > 3 || lane == "" && left > 2; left-- {
			leases, err := q.Receive(ctx, lane, 1)
			if err != nil {
				return err
			}
			outcome := queue.Done()
			if !strings.HasPrefix(leases[0].EventID, "evt_done") {
				outcome = queue.Dead("downstream answered 422: \"no such order\"")
			}
			if leases[0].EventID == hostile.EventID {
				outcome = queue.Dead("\x1b]0;owned\a no")
			}
			if err := q.Settle(ctx, leases[0], outcome); err != nil {
				return err
			}
		}
	}
	return q.Enqueue(ctx, event("evt_waits", "invoice.paid", ""))
}

// command runs floodproof in this process.
func command(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := Program{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	status = p.Main(t.Context())
	return status, out.String(), errs.String()
}

func seeded(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := seedQueue(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDLQDropKeeps: what is dropped can be made again from the lines that were written first, byte by byte.
func TestDLQDropKeeps(t *testing.T) {
	dir := seeded(t)
	file := filepath.Join(t.TempDir(), "dropped.jsonl")
	status, _, stderr := command(t, "dlq", "drop", "--all", "--yes", "--out", file, "--dir", dir)
	if status != ExitPass || !strings.Contains(stderr, "4 of 4 dead letters dropped") {
		t.Fatalf("drop: got status %d: %s", status, stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	payloads := map[string]string{}
	for line := range strings.Lines(string(text)) {
		var j letterJSON
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		raw := string(j.Base64)
		if j.Payload != nil {
			raw = *j.Payload
		}
		payloads[j.Provider+"/"+j.EventID] = raw
		if len(j.History) < 2 || j.DeliveryID == "" || j.Version != 3 || j.Resource != "in_1" {
			t.Errorf("line of %s: got %+v, want all of it with its history", j.EventID, j)
		}
	}
	want := map[string]string{
		"stripe/evt_dead1": `{"id":"evt_dead1"}`, "stripe/evt_dead2": `{"id":"evt_dead2"}`, "stripe/evt_\x1b[31m": string(hostilePayload), "shopify/evt_dead1": `{"id":"evt_dead1"}`,
	}
	if diff := cmp.Diff(want, payloads); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
	status, _, stderr = command(t, "dlq", "drop", "--all", "--yes", "--out", file, "--dir", dir)
	if status != ExitUsage || !strings.Contains(stderr, "exists") {
		t.Errorf("drop into a file that is there: got status %d: %s", status, stderr)
	}
}

// TestDLQRedrive: what is redriven is worked on from its first attempt, and a letter that is none is told.
func TestDLQRedrive(t *testing.T) {
	dir := seeded(t)
	status, _, stderr := command(t, "dlq", "redrive", "--reason", "ANSWERED 422", "--yes", "--dir", dir)
	if status != ExitPass || !strings.Contains(stderr, "2 of 2 dead letters redriven") {
		t.Fatalf("redrive: got status %d: %s", status, stderr)
	}
	q, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := q.Receive(t.Context(), "orders", 1)
	if err != nil || lease[0].EventID != "evt_dead2" || lease[0].Attempt != 1 {
		t.Errorf("Receive: got %+v, error %v; want evt_dead2 at its first attempt", lease, err)
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	status, _, stderr = command(t, "dlq", "redrive", "evt_dead2", "--dir", dir)
	if status != ExitFail || !strings.Contains(stderr, "there is no such dead letter") {
		t.Errorf("redrive of what is leased: got status %d: %s", status, stderr)
	}
}

// TestReplayEvents: what was done is due again with its attempts at zero, and nothing else is touched.
func TestReplayEvents(t *testing.T) {
	dir := seeded(t)
	status, stdout, stderr := command(t, "replay-events", "--since", "2026-11-30", "--type", "invoice.*", "--state", "done", "--yes", "--json", "--dir", dir)
	if status != ExitPass {
		t.Fatalf("replay: got status %d: %s", status, stderr)
	}
	var got replayReport
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if got.Replayed != 1 || got.Skipped+got.Failed != 0 || got.DryRun || !cmp.Equal(got.Groups, []replayGroup{{queue.StateDone, "invoice.paid", 1}}) {
		t.Errorf("report: got %+v, want one event of one group replayed", got)
	}
	q, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close(t.Context()) }() // it was only read
	states := map[string]int{}
	err = q.Events(t.Context(), queue.EventFilter{}, func(e queue.Event) error {
		states[fmt.Sprint(e.State)]++
		return nil
	})
	if diff := cmp.Diff(map[string]int{"done": 1, "failed": 4, "pending": 2}, states); diff != "" || err != nil {
		t.Errorf("states (-want +got, error %v):\n%s", err, diff)
	}
}

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		text string
		want time.Time
	}{
		{"2026-11-30", time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)},
		{"2026-11-30T06:07:08+01:00", time.Date(2026, 11, 30, 5, 7, 8, 0, time.UTC)},
		{"2026-11-30 06:07:08", time.Date(2026, 11, 30, 6, 7, 8, 0, time.UTC)},
		{"90m", now.Add(-90 * time.Minute)},
		{"1.5d", now.Add(-36 * time.Hour)},
		{"yesterday", time.Time{}}, {"-2h", time.Time{}}, {"NaNd", time.Time{}}, {"1e300d", time.Time{}}, {"", time.Time{}},
	} {
		got, err := parseMoment(tt.text, now)
		if !got.Equal(tt.want) || (err == nil) != !tt.want.IsZero() {
			t.Errorf("%q: got %v, error %v; want %v", tt.text, got, err, tt.want)
		}
	}
}

// FuzzPrintable: nothing that a stranger sends reaches a terminal as a control character.
func FuzzPrintable(f *testing.F) {
	f.Add([]byte("\x1b[2J\u202e\xff"))
	f.Add([]byte("plain\ntext\ttoo"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, text := range []string{printable(string(raw)), printableBlock(raw)} {
			for _, r := range text {
				if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
					t.Fatalf("%q became %q", raw, text)
				}
			}
		}
	})
}

// TestNarrowLetters: on a terminal that is too narrow for the table no line is longer than it, but for an id that has no spaces.
func TestNarrowLetters(t *testing.T) {
	l := queue.DeadLetter{
		Job:    queue.Job{Provider: "stripe", EventID: "evt_1MqqbKLt4dXK03v5qaIbiNCC", Type: "customer.subscription.updated", Lane: "subscriptions"},
		Reason: `downstream answered 422: "there is no such order in the books of the year"`, Attempts: 20, At: time.Date(2026, 12, 1, 2, 3, 4, 0, time.UTC),
	}
	for width, want := range map[int]string{
		80: `stripe/evt_1MqqbKLt4dXK03v5qaIbiNCC
  2026-12-01T02:03:04Z, customer.subscription.updated, lane subscriptions, 20
  attempts
  downstream answered 422: "there is no such order in the books of the year"
`,
		0: `GIVEN UP              EVENT                                TYPE                           LANE           ATTEMPTS  REASON
2026-12-01T02:03:04Z  stripe/evt_1MqqbKLt4dXK03v5qaIbiNCC  customer.subscription.updated  subscriptions  20        downstream answered 422: "there is no such order in the books of the year"
`,
	} {
		var out strings.Builder
		table := newLetterTable(&out, width)
		if err := errors.Join(table.add(&l), table.out.Flush()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}
