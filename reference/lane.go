package reference

import (
	"errors"
	"fmt"
	"strings"

	"floodproof/reference/queue"
)

// LaneRule sends events into a lane. It looks at provider and type alone, which are the same whenever an event is delivered: an event that changed its lane from
// one delivery to the next would still be known by its id, and so stay where it was.
type LaneRule struct {
	// Provider is a provider's name, "" any.
	Provider string
	// Type is an event type, in which * stands for anything ("orders/*", "invoice.*"); "" is any.
	Type string
	// Lane is where these events wait. It has no default: a rule without it is refused.
	Lane string
}

// Check refuses a rule that cannot be meant, as NewReceiver does.
func (r LaneRule) Check() error { return r.check() }

// check refuses a rule that cannot be meant.
func (r LaneRule) check() error {
	switch {
	case r.Lane == "":
		return errors.New("it names no lane")
	case !usable(r.Lane):
		return fmt.Errorf("lane %q: use printable characters, at most %d bytes", r.Lane, maxText)
	case strings.ContainsAny(r.Type, `?[\\`):
		return fmt.Errorf("type %q: only * has a meaning in it", r.Type)
	}
	return nil
}

// fits reports whether the rule is for an event.
func (r LaneRule) fits(provider, eventType string) bool {
	return (r.Provider == "" || r.Provider == provider) && (r.Type == "" || matches(r.Type, eventType))
}

// matches compares text with a pattern in which * stands for any text, slashes too.
func matches(pattern, text string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for {
		var part string
		part, rest, starred = strings.Cut(rest, "*")
		if !starred {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
}

// laneOf is the lane of an event, "" if no rule fits.
func laneOf(rules []LaneRule, provider, eventType string) string {
	for _, r := range rules {
		if r.fits(provider, eventType) {
			return r.Lane
		}
	}
	return ""
}

// DebounceRule makes events updates of their resource, of which only the newest is worked on. Events without a resource are not debounced.
type DebounceRule struct {
	// Provider and Type say which events, as in a LaneRule.
	Provider, Type string
	// Debounce says how; its zero value is refused.
	Debounce queue.Debounce
}

// Check refuses a rule that cannot be meant, as NewReceiver does.
func (r DebounceRule) Check() error { return r.check() }

func (r DebounceRule) check() error {
	if r.Debounce == (queue.Debounce{}) {
		return errors.New("it says nothing: set Quiet and MaxWait")
	}
	if err := r.Debounce.Check("any"); err != nil {
		return err
	}
	return LaneRule{Provider: r.Provider, Type: r.Type, Lane: "any"}.check()
}

// debounceOf is how a job is debounced, the zero value if no rule fits.
func debounceOf(rules []DebounceRule, job *queue.Job) queue.Debounce {
	if job.Resource == "" || job.DeadOnArrival != "" {
		return queue.Debounce{}
	}
	for _, r := range rules {
		if (LaneRule{Provider: r.Provider, Type: r.Type}).fits(job.Provider, job.Type) {
			return r.Debounce
		}
	}
	return queue.Debounce{}
}
