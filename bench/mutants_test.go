package bench

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"testing"

	"floodproof/bench/node"
	"floodproof/reference"
	"floodproof/reference/queue"
)

// mutant is a pipeline that is broken in one way, and the invariant that must catch it.
type mutant struct {
	parts node.Parts
	fails string
	// scenario is "smoke" if it is empty.
	scenario string
}

// mutants are the classic mistakes of webhook pipelines. Every one of them must be caught every time: the scenarios' deterministic faults see to it.
func mutants() map[string]mutant {
	return map[string]mutant{
		// The receiver answers 200 and writes later: what it had in memory dies with it.
		"ack-before-write": {parts: node.Parts{Queue: func(q queue.Queue) queue.Queue { return ackFirst{q} }}, fails: "no-loss"},
		// The worker settles the job and then does the work: a crash between the two loses it.
		"settle-before-effect": {parts: node.Parts{Queue: func(q queue.Queue) queue.Queue { return settleFirst{q} }}, fails: "no-loss"},
		// The effect is called without an idempotency key: a call whose answer was lost happens twice.
		"no-idempotency-key": {parts: node.Parts{Handler: func(reference.Handler) reference.Handler { return reference.HandlerFunc(withoutKey) }}, fails: "no-double-effect"},
		// All steps are done again after a crash, and the mail server knows no keys.
		"forgets-steps": {parts: node.Parts{Handler: func(reference.Handler) reference.Handler { return reference.HandlerFunc(forgetSteps) }}, fails: "no-double-effect", scenario: "order"},
		// The last step is left out.
		"unfinished": {parts: node.Parts{Handler: func(reference.Handler) reference.Handler { return reference.HandlerFunc(leaveUnfinished) }}, fails: "no-loss", scenario: "order"},
		// Every update is worked on by itself.
		"no-debounce": {parts: node.Parts{Queue: func(q queue.Queue) queue.Queue {
			return changed{q, func(j *queue.Job) { j.Debounce = queue.Debounce{} }}
		}}, fails: "debounce-bounds", scenario: "debounce"},
		// The update that came last wins, not the newest.
		"old-version-wins": {parts: node.Parts{Queue: func(q queue.Queue) queue.Queue { return changed{q, func(j *queue.Job) { j.Version = 0 }} }}, fails: "debounce-final", scenario: "debounce"},
		// Whatever comes is taken for new.
		"forgets-duplicates": forgetsDuplicates(),
		// Every job is given up at once.
		"everything-dead": {parts: node.Parts{Handler: func(reference.Handler) reference.Handler { return reference.HandlerFunc(giveUp) }}, fails: "dead-letters-accounted"},
	}
}

// ackFirst says yes before the write.
type ackFirst struct{ queue.Queue }

func (q ackFirst) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	go func() { _ = q.Queue.Enqueue(context.WithoutCancel(ctx), jobs...) }()
	return nil
}

// changed enqueues something else than it was given.
type changed struct {
	queue.Queue
	change func(*queue.Job)
}

func (q changed) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		q.change(&jobs[i])
	}
	return q.Queue.Enqueue(ctx, jobs...)
}

// settleFirst settles what it receives before anybody has worked on it.
type settleFirst struct{ queue.Queue }

func (q settleFirst) Receive(ctx context.Context, lane string, most int) ([]queue.Lease, error) {
	leases, err := q.Queue.Receive(ctx, "", most)
	for _, l := range leases {
		err = errors.Join(err, q.Queue.Settle(ctx, l, queue.Done()))
	}
	return leases, err
}

func (q settleFirst) Settle(context.Context, queue.Lease, queue.Outcome) error { return nil }

func withoutKey(ctx context.Context, l queue.Lease) error {
	return plainCall(ctx, http.MethodPost, url.PathEscape(l.EventID))
}

func forgetSteps(ctx context.Context, l queue.Lease) error {
	return errors.Join(leaveUnfinished(ctx, l), plainCall(ctx, http.MethodPut, url.PathEscape(l.EventID)+"/fulfilled"))
}

func leaveUnfinished(ctx context.Context, l queue.Lease) error {
	if err := plainCall(ctx, http.MethodPut, url.PathEscape(l.EventID)+"/order"); err != nil {
		return err
	}
	return plainCall(ctx, http.MethodPost, url.PathEscape(l.EventID)+"/email")
}

// plainCall calls the sink without an idempotency key.
func plainCall(ctx context.Context, method, effect string) error {
	req, err := http.NewRequestWithContext(ctx, method, os.Getenv(node.SinkVariable)+"/effects/"+effect, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode == http.StatusUnprocessableEntity:
		return reference.Permanent(errors.New(resp.Status))
	default:
		return errors.New(resp.Status)
	}
}

func giveUp(context.Context, queue.Lease) error {
	return reference.Permanent(errors.New("too lazy"))
}

// TestMutants runs each broken pipeline through its scenario and demands status 1 and the right invariant.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("each mutant takes a run of some twenty seconds")
	}
	t.Parallel()
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait, and what they measure is not judged
			mustBeCaught(t, name, m)
		})
	}
}

// mustBeCaught runs a broken pipeline through its scenario.
func mustBeCaught(t *testing.T, name string, m mutant) {
	t.Helper()
	p := play(t, name, cmp.Or(m.scenario, "smoke"))
	if p.status != ExitFail {
		t.Errorf("exit status %d, want %d; findings:\n%s", p.status, ExitFail, p.findings())
	}
	if !p.fails(m.fails) {
		t.Errorf("%s did not fail; findings:\n%s", m.fails, p.findings())
	}
}
