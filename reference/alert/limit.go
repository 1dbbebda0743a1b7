package alert

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

const (
	// totalBurst and totalRate are how many times as many alerts there may be at once, and later on, over all groups as of one.
	totalBurst = 4
	totalRate  = 5
	// maxGroups bounds what is remembered. Beyond it, letters of reasons that are new share one group.
	maxGroups = 500
	// maxReason is how much of a reason is told, in bytes.
	maxReason = 300
)

// limiter decides which letters are told one by one. It has no clock and no goroutine.
type limiter struct {
	every  time.Duration
	groups map[string]*group
	total  bucket
	burst  int
}

// group are the letters of one lane and reason.
type group struct {
	bucket
	// more are those that were not told since since; newest is the last of them.
	more   int
	since  time.Time
	newest Letter
}

// bucket is a token bucket as one instant: when it would be full (GCRA, https://www.itu.int/rec/T-REC-I.371).
type bucket struct {
	full  time.Time
	every time.Duration
	burst int
}

// next is how long there is no token.
func (b *bucket) next(now time.Time) time.Duration {
	return max(0, max(0, b.full.Sub(now))-time.Duration(b.burst-1)*b.every)
}

// take takes a token, which must be there.
func (b *bucket) take(now time.Time) {
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(b.every)
}

func newLimiter(every time.Duration, burst int) *limiter {
	return &limiter{every: every, burst: burst, groups: map[string]*group{}, total: bucket{every: max(1, every/totalRate), burst: totalBurst * burst}}
}

// admit reports whether a letter is told now. If not, it is counted.
func (l *limiter) admit(letter Letter, now time.Time) bool {
	g := l.group(letter, now)
	// A sum that is due goes first, and has the letter in it.
	if g.more == 0 && g.next(now) == 0 && l.total.next(now) == 0 {
		g.take(now)
		l.total.take(now)
		return true
	}
	if g.more == 0 {
		g.since = now
	}
	g.more++
	g.newest = letter
	return false
}

// group finds the group of a letter, or makes it.
func (l *limiter) group(letter Letter, now time.Time) *group {
	key := letter.Lane + "\x00" + numbers.ReplaceAllString(letter.Reason, "#")
	if g := l.groups[key]; g != nil {
		return g
	}
	if len(l.groups) >= maxGroups {
		l.forget(now)
	}
	if len(l.groups) >= maxGroups {
		key = letter.Lane + "\x00"
		if g := l.groups[key]; g != nil {
			return g
		}
		// One group above the bound for each lane, and lanes are the configuration's.
	}
	g := &group{bucket: bucket{every: l.every, burst: l.burst}}
	l.groups[key] = g
	return g
}

// forget removes groups that are as if they had never been.
func (l *limiter) forget(now time.Time) {
	for key, g := range l.groups {
		if g.more == 0 && !g.full.After(now) {
			delete(l.groups, key)
		}
	}
}

// due are the sums for which there is room now, those first that wait longest.
func (l *limiter) due(now time.Time) (notices []Notice) {
	for _, g := range l.waiting() {
		if g.next(now) == 0 && l.total.next(now) == 0 {
			g.take(now)
			l.total.take(now)
			notices = append(notices, g.sum())
		}
	}
	l.forget(now)
	return notices
}

// rest are all sums.
func (l *limiter) rest() (notices []Notice) {
	for _, g := range l.waiting() {
		notices = append(notices, g.sum())
	}
	return notices
}

func (g *group) sum() Notice {
	n := Notice{Letter: g.newest, More: g.more, Since: g.since}
	g.more, g.newest = 0, Letter{}
	return n
}

// waiting are the groups that have something to tell.
func (l *limiter) waiting() (groups []*group) {
	for _, g := range l.groups {
		if g.more > 0 {
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(a, b *group) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.newest.Lane, b.newest.Lane), cmp.Compare(a.newest.Reason, b.newest.Reason))
	})
	return groups
}

// next is how long to wait before there may be a sum to tell.
func (l *limiter) next(now time.Time) time.Duration {
	wait := l.every
	for _, g := range l.groups {
		if g.more > 0 {
			wait = min(wait, max(g.next(now), l.total.next(now)))
		}
	}
	return max(wait, time.Millisecond)
}

var (
	// numbers are those in a reason that tell no groups apart: sizes, ids, instants. A status of three digits does.
	numbers = regexp.MustCompile(`[0-9]{4,}`)
	// quoted is what a reason quotes, as %q writes it, or up to its end if it was cut off.
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|\\?$)`)
)

// Redact is a reason without what stands in quotes, without characters that do not show, and not longer than some lines.
func Redact(reason string) string {
	text := quoted.ReplaceAllString(reason, `"…"`)
	text = strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) && r != unicode.ReplacementChar {
			return r
		}
		return ' '
	}, text)
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}
