package bench

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"time"

	"floodproof/reference/queue"
)

// letterFilter chooses dead letters.
type letterFilter struct {
	eventFilter
	// names are events that were named one by one.
	names []string
	types *regexp.Regexp
}

func (f *letterFilter) register(fs *flag.FlagSet) {
	f.eventFilter.register(fs, "given up")
	fs.StringVar(&f.reason, "reason", "", "only those with this `text` in their reason")
	fs.Func("lane", "only those of this `lane`; \"\" is the default one", func(text string) error {
		f.lane, f.hasAnyLane = text, true
		return nil
	})
}

// narrows reports whether a flag chooses.
func (f *letterFilter) narrows() bool {
	return f.hasSince || f.hasUntil || f.reason != "" || f.provider != "" || f.kind != "" || f.hasAnyLane
}

// fits reports whether a letter is chosen.
func (f *letterFilter) fits(l *queue.DeadLetter) bool {
	switch {
	case f.hasSince && l.At.Before(f.since), f.hasUntil && !l.At.Before(f.until):
		return false
	case f.provider != "" && f.provider != l.Provider, f.hasAnyLane && f.lane != l.Lane:
		return false
	case f.reason != "" && !strings.Contains(strings.ToLower(l.Reason), strings.ToLower(f.reason)):
		return false
	case f.types != nil && !f.types.MatchString(l.Type):
		return false
	}
	return len(f.names) == 0 || f.named(l.Provider, l.EventID) >= 0
}

// named is which of the names is that of an event, or -1. An event is named by its id, or by provider/id where two providers have the same.
func (f *letterFilter) named(provider, id string) int {
	for i, name := range f.names {
		if name == id || name == provider+"/"+id {
			return i
		}
	}
	return -1
}

// letters calls fn for each letter that is chosen, oldest first.
func (f *letterFilter) letters(ctx context.Context, q queue.DeadLister, fn func(queue.DeadLetter) error) error {
	if err := f.check(); err != nil {
		return usagef("", "dlq: %w", err)
	}
	if f.kind != "" {
		f.types = f.queueFilter().TypePattern()
	}
	return q.DeadLetters(ctx, func(l queue.DeadLetter) error {
		if !f.fits(&l) {
			return nil
		}
		return fn(l)
	})
}

// chosenLetter identifies a dead letter that was chosen. Its payload is not held: there may be many.
type chosenLetter struct {
	provider, id string
}

// choose finds the letters that something is to be done with. Those that come meanwhile are not among them: nobody has seen them.
func (f *letterFilter) choose(ctx context.Context, q queue.DeadLister, seen func(queue.DeadLetter) error) (chosen []chosenLetter, err error) {
	begin := time.Now()
	found := make([]int, len(f.names))
	err = f.letters(ctx, q, func(l queue.DeadLetter) error {
		if len(f.names) == 0 && l.At.After(begin) {
			return nil
		}
		if i := f.named(l.Provider, l.EventID); i >= 0 {
			found[i]++
		}
		chosen = append(chosen, chosenLetter{l.Provider, l.EventID})
		return seen(l)
	})
	if err != nil {
		return nil, err
	}
	for i, n := range found {
		switch {
		case n == 0:
			return nil, fmt.Errorf("event %s: %w", printable(f.names[i]), queue.ErrNotDead)
		case n > 1:
			return nil, usagef("write provider/id, or add --provider", "event %s is the id of %d dead letters, of different providers", printable(f.names[i]), n)
		}
	}
	return chosen, nil
}
