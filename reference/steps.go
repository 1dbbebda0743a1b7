package reference

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"floodproof/reference/queue"
)

// Step is one of several things that have to be done for an event. The zero value is the whole of an effect that has no steps.
type Step struct {
	// Name is the step's, of letters, digits, dashes and underscores. It becomes a part of the downstream's path and of the idempotency key.
	Name string
	// Upsert says that it makes something as it should be, so that doing it again changes nothing (PUT). Any other step is an act (POST), and is done under a key.
	Upsert bool
}

// String is the step as ParseSteps reads it: "PUT order".
func (s Step) String() string { return s.method() + " " + s.Name }

func (s Step) method() string {
	if s.Upsert {
		return http.MethodPut
	}
	return http.MethodPost
}

// OrderSteps are those of a paid order: store it, send the confirmation by mail, mark it as fulfilled.
func OrderSteps() []Step {
	return []Step{{Name: "order", Upsert: true}, {Name: "email"}, {Name: "fulfilled", Upsert: true}}
}

// ParseSteps reads steps as they are written in a flag: "PUT order, POST email, PUT fulfilled".
func ParseSteps(text string) ([]Step, error) {
	var steps []Step
	for part := range strings.SplitSeq(text, ",") {
		method, name, _ := strings.Cut(strings.TrimSpace(part), " ")
		step := Step{Name: strings.TrimSpace(name), Upsert: method == http.MethodPut}
		if method != step.method() || !isWord(step.Name) {
			return nil, fmt.Errorf("step %q: write PUT or POST and a name of letters, digits, dashes and underscores", strings.TrimSpace(part))
		}
		if slices.ContainsFunc(steps, func(s Step) bool { return s.Name == step.Name }) {
			return nil, fmt.Errorf("step %q comes twice: each needs a name of its own", step.Name)
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func isWord(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// StepHandler is a Handler that does several things for an event, in order, and none that is finished again. All fields must be set. It is safe for concurrent use.
//
// What is finished is noted in the queue, under the lease. A crash between an act and its note leaves open whether it was done: it is then called once more, and the
// downstream must know it by its key, or be asked. No pipeline can do better. What the notes add is that finished steps are not even called again, which is what counts for
// a downstream that knows no keys, and that whoever has lost the lease in the middle does not go on.
type StepHandler struct {
	Sink  *SinkHandler
	Notes queue.Stepper
	Steps []Step
}

// NewStepHandler checks that the queue can keep notes.
func NewStepHandler(sink *SinkHandler, q queue.Queue, steps []Step) (*StepHandler, error) {
	notes, ok := q.(queue.Stepper)
	switch {
	case len(steps) == 0:
		return nil, errors.New("configure steps: there are none")
	case !ok:
		return nil, errors.New("configure steps: this queue cannot remember which are finished: use another backend, or a handler of one step")
	}
	return &StepHandler{Sink: sink, Notes: notes, Steps: steps}, nil
}

// Handle does what is left to do.
func (h *StepHandler) Handle(ctx context.Context, lease queue.Lease) error {
	var finished []string
	if lease.Attempt > 1 || lease.Token > 1 { // before, there cannot be any; attempts begin anew when somebody redrives the job, tokens do not
		var err error
		if finished, err = h.Notes.Steps(ctx, lease); err != nil {
			return err
		}
	}
	for _, step := range h.Steps {
		if slices.Contains(finished, step.Name) {
			continue
		}
		if err := h.Sink.call(ctx, lease, step); err != nil {
			return h.failed(step, err)
		}
		if err := h.Notes.Finish(ctx, lease, step.Name); err != nil {
			return h.failed(step, err)
		}
	}
	return nil
}

// failed names the step, and leaves to errors.As and errors.Is what the worker decides by.
func (h *StepHandler) failed(step Step, err error) error {
	return fmt.Errorf("step %s: %w", step.Name, err)
}
