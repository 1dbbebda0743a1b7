package bench

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"floodproof/reference"
	"floodproof/reference/metrics"
	"floodproof/reference/queue"
)

// serveLane is a rule that sends events into a lane. Each of a lane's rules may say how the lane is worked on; they must not contradict each other.
type serveLane struct {
	// at is where the rule stands, for errors.
	at                   string
	name, provider, kind string
	own                  laneSettings
}

// laneSettings are how a lane is worked on. In a rule 0 is not said.
type laneSettings struct {
	concurrency int
	// rate is calls of the downstream a second, burst how many at once; 0 is no limit.
	rate  float64
	burst int
	// backoff and maxBackoff are the first and the longest wait after a failure.
	backoff, maxBackoff time.Duration
	// maxAttempts and giveUpAfter have both to be reached; attemptsDecide in place of the latter leaves it to the former.
	maxAttempts int
	giveUpAfter time.Duration
}

// attemptsDecide is a giveUpAfter that is always reached.
const attemptsDecide time.Duration = -1

// laneKeys are the keys of a lane's settings, as a rule and, with other names, as the whole file has them.
func laneKeys(s *laneSettings) map[string]func(string) error {
	return map[string]func(string) error{
		"concurrency": number(&s.concurrency), "rate": rate(&s.rate), "burst": number(&s.burst), "backoff": duration(&s.backoff), "max_backoff": duration(&s.maxBackoff),
		"max_attempts": number(&s.maxAttempts), "give_up_after": giveUpAfter(&s.giveUpAfter),
	}
}

// rate reads how often in a time: "40", "40/s", "90/m" or "1000/h". It keeps the number a second.
func rate(into *float64) func(string) error {
	units := map[string]float64{"s": 1, "m": 60, "h": 3600}
	return func(text string) error {
		amount, unit, found := strings.Cut(text, "/")
		n, err := strconv.ParseFloat(strings.TrimSpace(amount), 64)
		seconds, known := units[strings.TrimSpace(unit)]
		if !found {
			seconds, known = 1, true
		}
		if err != nil || !known || !(n > 0) || n > 1e6 || math.IsNaN(n) {
			return fmt.Errorf("%q: write how many a second, minute or hour, such as 40/s, 90/m or 1000/h", text)
		}
		*into = n / seconds
		return nil
	}
}

// giveUpAfter reads a time, or 0 where the attempts alone decide.
func giveUpAfter(into *time.Duration) func(string) error {
	return func(text string) error {
		if text == "0" {
			*into = attemptsDecide
			return nil
		}
		d, err := parseDays(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q: write a time, such as 30m, 72h or 3d, or 0, and the attempts alone decide", text)
		}
		*into = d
		return nil
	}
}

// lane reads a rule.
func (f *serveFile) lane(n *yaml.Node) serveLane {
	l := serveLane{at: f.where(n)}
	if f.from != "" {
		l.at = f.from + ": " + l.at
	}
	keys := map[string]func(*yaml.Node){
		"name":     func(n *yaml.Node) { l.name = f.word(n) },
		"provider": func(n *yaml.Node) { l.provider = f.word(n) },
		"type":     func(n *yaml.Node) { l.kind = f.word(n) },
	}
	for key, set := range laneKeys(&l.own) {
		keys[key] = func(n *yaml.Node) { f.set(n, set) }
	}
	if seen := f.mapping(n, keys); !seen["name"] {
		f.fail(n, "the lane has no name")
	}
	return l
}

// laneOf is how a lane is worked on: as its rules say, and else as all lanes are. A rate that is not its own it shares with all other such lanes.
func (c *serveConfig) laneOf(name string) (s laneSettings, ownRate bool) {
	s = c.all
	for _, l := range c.lanes {
		if name == "" || l.name != name {
			continue
		}
		own := l.own
		if own.rate > 0 {
			s.rate, s.burst, ownRate = own.rate, 0, true
		}
		s = laneSettings{
			concurrency: cmp.Or(own.concurrency, s.concurrency), rate: s.rate, burst: cmp.Or(own.burst, s.burst), backoff: cmp.Or(own.backoff, s.backoff),
			maxBackoff: cmp.Or(own.maxBackoff, s.maxBackoff), maxAttempts: cmp.Or(own.maxAttempts, s.maxAttempts), giveUpAfter: cmp.Or(own.giveUpAfter, s.giveUpAfter),
		}
	}
	if s.rate > 0 {
		s.burst = max(1, s.burst)
	}
	return s, ownRate
}

// checkLanes finds what is wrong with the lanes, each by itself and with what is said of all.
func (c *serveConfig) checkLanes() (faults []error) {
	fail := func(at, format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: "+format, append([]any{at}, args...)...))
	}
	if c.all.burst > 0 && c.all.rate == 0 {
		fail(c.from("burst"), "there is no rate that the burst is of: set rate too, or leave it out")
	}
	if c.all.maxBackoff < c.all.backoff {
		fail(c.from("max-backoff", "backoff"), "the longest wait is %v, less than the first one of %v: raise max-backoff, or lower backoff", c.all.maxBackoff, c.all.backoff)
	}
	for i, l := range c.lanes {
		if err := checkLaneRule(l); err != nil {
			fail(l.at, "%v", err)
		}
		if _, known := c.receivers[l.provider]; l.provider != "" && !known {
			fail(l.at, "lane %s is for events of %s, which has no secret here", l.name, l.provider)
		}
		if text := contradiction(c.lanes[:i], l); text != "" {
			fail(l.at, "%s: keep one", text)
		}
		switch s, own := c.laneOf(l.name); {
		case l.own.burst > 0 && !own:
			fail(l.at, "lane %s has a burst, and no rate that it is of: set rate too, or leave it out", l.name)
		case (l.own.backoff > 0 || l.own.maxBackoff > 0) && s.maxBackoff < s.backoff && c.all.maxBackoff >= c.all.backoff:
			fail(l.at, "lane %s would wait %v at first and %v at most: set its max_backoff to more than its backoff", l.name, s.backoff, s.maxBackoff)
		}
	}
	return faults
}

// checkLaneRule finds what the parts would find wrong with a rule, who do not know where it stands.
func checkLaneRule(l serveLane) error {
	if l.name == metrics.DefaultLane || l.name == metrics.Other {
		return fmt.Errorf("%q cannot be the name of a lane: it has a meaning in the metrics", l.name)
	}
	if l.name == "" {
		return nil // which was said where it was read
	}
	return reference.LaneRule{Provider: l.provider, Type: l.kind, Lane: l.name}.Check()
}

// contradiction says what a rule says otherwise than those before it, of the same lane.
func contradiction(before []serveLane, l serveLane) string {
	for _, b := range before {
		if b.name != l.name {
			continue
		}
		for _, pair := range []struct {
			what     string
			old, new any
			differ   bool
		}{
			{"concurrency", b.own.concurrency, l.own.concurrency, differ(b.own.concurrency, l.own.concurrency)},
			{"rate", b.own.rate, l.own.rate, differ(b.own.rate, l.own.rate)},
			{"burst", b.own.burst, l.own.burst, differ(b.own.burst, l.own.burst)},
			{"backoff", b.own.backoff, l.own.backoff, differ(b.own.backoff, l.own.backoff)},
			{"max_backoff", b.own.maxBackoff, l.own.maxBackoff, differ(b.own.maxBackoff, l.own.maxBackoff)},
			{"max_attempts", b.own.maxAttempts, l.own.maxAttempts, differ(b.own.maxAttempts, l.own.maxAttempts)},
			{"give_up_after", max(0, b.own.giveUpAfter), max(0, l.own.giveUpAfter), differ(b.own.giveUpAfter, l.own.giveUpAfter)},
		} {
			if pair.differ {
				return fmt.Sprintf("lane %s has a %s of %v and one of %v", l.name, pair.what, pair.old, pair.new)
			}
		}
	}
	return ""
}

// differ reports whether both say something, and not the same.
func differ[T comparable](a, b T) bool {
	var unsaid T
	return a != unsaid && b != unsaid && a != b
}

// limits are the rates of the lanes, "" the default one. Lanes without a rate of their own share that of all.
func (c *serveConfig) limits() map[string]queue.Limit {
	limits := map[string]queue.Limit{}
	for _, name := range append([]string{""}, c.laneNames()...) {
		s, own := c.laneOf(name)
		switch {
		case own:
			limits[name] = queue.Limit{Name: "lane " + name, Rate: s.rate, Burst: s.burst}
		case s.rate > 0:
			limits[name] = queue.Limit{Name: "all lanes", Rate: s.rate, Burst: s.burst}
		}
	}
	return limits
}

// limited puts the rate of a lane before a handler, if it has one. A queue that cannot share rates leaves each process to itself.
func (c *serveConfig) limited(lane string, h reference.Handler, q queue.Queue) (reference.Handler, error) {
	limit, ok := c.limits()[lane]
	if !ok || h == nil {
		return h, nil
	}
	if !sharesLimits(q) {
		q = struct{ queue.Queue }{q} // which hides that it may look as if it could
	}
	l, err := reference.NewLimitHandler(h, q, reference.RateConfig{Limit: limit, Calls: max(1, len(c.steps))})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// sharesLimits reports whether the processes of a queue can keep to a rate together.
func sharesLimits(q queue.Queue) bool {
	_, able := q.(queue.Limiter)
	claimer, ok := q.(interface{ Claims() queue.Claims })
	return able && ok && claimer.Claims().SharedLimit
}

// makeWorkers makes a worker for the default lane and one for each other.
func (c *serveConfig) makeWorkers(q queue.Queue, h reference.Handler, log *slog.Logger) ([]*reference.Worker, error) {
	var workers []*reference.Worker
	var faults []error
	for _, lane := range append([]string{""}, c.laneNames()...) {
		s, _ := c.laneOf(lane)
		handler, err := c.limited(lane, h, q)
		faults = append(faults, err)
		workers = append(workers, &reference.Worker{
			Queue: q, Lane: lane, Handler: handler, Concurrency: s.concurrency,
			Backoff: reference.Backoff{Base: s.backoff, Max: s.maxBackoff}, MaxAttempts: s.maxAttempts, GiveUpAfter: s.giveUpAfter, Seed: uint64(os.Getpid()),
			Logger: log.With("lane", lane),
		})
	}
	return workers, errors.Join(faults...)
}

// laneRules are the rules as the receiver takes them.
func (c *serveConfig) laneRules() []reference.LaneRule {
	var rules []reference.LaneRule
	for _, l := range c.lanes {
		rules = append(rules, reference.LaneRule{Provider: l.provider, Type: l.kind, Lane: l.name})
	}
	return rules
}

// laneNames are the named lanes, in order.
func (c *serveConfig) laneNames() []string {
	names := []string{}
	for _, l := range c.lanes {
		names = append(names, l.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// totalConcurrency is how many jobs are in hand at once, at most.
func (c *serveConfig) totalConcurrency() int {
	total := 0
	for _, name := range append([]string{""}, c.laneNames()...) {
		s, _ := c.laneOf(name)
		total += s.concurrency
	}
	return max(0, total)
}

// describeLane says how a lane is worked on, for people.
func (c *serveConfig) describeLane(name string) string {
	s, own := c.laneOf(name)
	parts := []string{fmt.Sprintf("%d at once", s.concurrency)}
	if s.rate > 0 {
		text := queue.Limit{Rate: s.rate, Burst: s.burst}.String()
		if !own {
			text += " with the others"
		}
		parts = append(parts, text)
	}
	parts = append(parts, fmt.Sprintf("waits %v to %v", s.backoff, s.maxBackoff))
	end := fmt.Sprintf("gives up after %d attempts", s.maxAttempts)
	if s.giveUpAfter > 0 {
		end += " and " + days(s.giveUpAfter)
	}
	return strings.Join(append(parts, end), ", ")
}

// days is a length of time as people write it.
func days(d time.Duration) string {
	switch {
	case d >= 48*time.Hour && d%(24*time.Hour) == 0:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
