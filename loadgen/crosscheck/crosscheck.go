package crosscheck

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"floodproof/loadgen/provider"
)

const (
	// DefaultSlots is how many requests are in flight at most where nothing else is said: vegeta without a bound starts a goroutine for each request that has
	// to wait, and then measures those.
	DefaultSlots = 256
	// maxRequests bounds what one round sends.
	maxRequests = 100_000_000
	// MinBody is the shortest body of a plain request: an id has to fit in.
	MinBody = 64
)

// Config says what is measured. URL, Rate, For and Rounds are needed.
type Config struct {
	URL string
	// Rate is in requests a second, For how long each round takes, Rounds how many there are of each generator.
	Rate   int
	For    time.Duration
	Rounds int
	// Slots bounds the requests in flight; 0 means DefaultSlots.
	Slots int
	// Provider makes and signs the requests, with Secrets. Nil sends plain JSON of Body bytes. Of a provider's habits only its requests, its time-out and its
	// idea of success are kept: nothing is sent again, nothing in batches, nothing in line.
	Provider *provider.Provider
	Secrets  []string
	Body     int
	// Seed fixes what is sent. Ids do not repeat between the rounds of one run.
	Seed uint64
	// Progress is called before each round with the number of those that are over; nil does nothing.
	Progress func(over, of int, name string)
}

// check returns all that is wrong with the fields.
func (c *Config) check() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		fail("url: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		fail("url %q: want one such as http://127.0.0.1:8080/webhooks/stripe", c.URL)
	}
	if c.Rate < 1 || c.Rate > 1_000_000 {
		fail("rate: %d a second, want 1 to 1000000", c.Rate)
	} else if n := float64(c.Rate) * c.For.Seconds(); n < 1 || n > maxRequests {
		fail("for: %v at %d a second are %.0f requests, want 1 to %d", c.For, c.Rate, n, maxRequests)
	}
	if c.Rounds < 1 || c.Rounds > 100 {
		fail("rounds: %d, want 1 to 100", c.Rounds)
	}
	if c.Slots < 0 || c.Slots > 100_000 {
		fail("slots: %d, want 1 to 100000", c.Slots)
	}
	if c.Provider == nil && (c.Body < MinBody || c.Body > 16<<20) {
		fail("body: %d bytes, want %d to 16 MiB", c.Body, MinBody)
	}
	if c.Provider != nil && len(c.Secrets) == 0 {
		fail("secrets: %s has none to sign with", c.Provider.Name)
	}
	return errors.Join(errs...)
}

// Result is what both generators found, all rounds together.
type Result struct {
	URL string
	// Rate is what was asked for, Slots the bound on requests in flight.
	Rate               int
	For                time.Duration
	Rounds             int
	Slots              int
	Seed               uint64
	Vegeta, Floodproof Side
}

// Run measures in turn, vegeta first. It returns the error of what is wrong with the fields before anything is sent, or ctx.Err() with no result.
func Run(ctx context.Context, c Config) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Slots == 0 {
		c.Slots = DefaultSlots
	}
	s := newSource(c)
	r := &Result{URL: c.URL, Rate: c.Rate, For: c.For, Rounds: c.Rounds, Slots: c.Slots, Seed: c.Seed, Vegeta: newSide(), Floodproof: newSide()}
	for i := range c.Rounds {
		for turn, play := range []struct {
			name string
			with func(context.Context, *source, int) (*round, error)
			into *Side
		}{{"vegeta", vegetaRound, &r.Vegeta}, {"floodproof", ourRound, &r.Floodproof}} {
			if c.Progress != nil {
				c.Progress(2*i+turn, 2*c.Rounds, play.name)
			}
			got, err := play.with(ctx, s, i)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, fmt.Errorf("round %d of %s: %w", i+1, play.name, err)
			}
			play.into.add(got)
		}
	}
	return r, nil
}
