package scenarios

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A reader takes one scalar node into its destination, or reports what is wrong and leaves the destination alone.
// Every reader fits field.read.

var (
	// decimal is a number as people write it. Octal, hexadecimal, leading zeros, .inf and .nan, which YAML would take, are not.
	decimal = regexp.MustCompile(`^-?((0|[1-9][0-9_]*)(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	// percent is a decimal without exponent before the sign.
	percent = regexp.MustCompile(`^((?:0|[1-9][0-9]*)(?:\.[0-9]+)?) ?%$`)
	// word is a name that is safe as a file name and in a table.
	word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

// text reads a non-empty text.
func (d *decoder) text(dst *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || strings.TrimSpace(n.Value) == "" {
			d.fail(n, d.is(n), "write text, in quotes where it looks like something else")
			return
		}
		*dst = strings.TrimSpace(n.Value)
	}
}

// name reads a word that is used as a name elsewhere.
func (d *decoder) name(dst *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || !word.MatchString(n.Value) {
			d.fail(n, d.is(n), "write a name of letters, digits, dots, dashes and underscores")
			return
		}
		*dst = n.Value
	}
}

// oneOf reads one of several words; kind is what they are in the plural.
func (d *decoder) oneOf(dst *string, kind string, known []string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		for _, k := range known {
			if n.Kind == yaml.ScalarNode && n.Value == k {
				*dst = k
				return
			}
		}
		d.fail(n, d.is(n), didYouMean(n.Value, kind, known))
	}
}

// boolean reads true or false.
func (d *decoder) boolean(dst *bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
			d.fail(n, d.is(n), "write true or false")
			return
		}
		*dst = strings.EqualFold(n.Value, "true")
	}
}

// whole reads a whole number from low to high; 1_000_000 is allowed.
func whole[T int | uint64](d *decoder, dst *T, low, high T) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
		if !isNumber(n) || err != nil || v < int64(low) || v > int64(high) {
			d.fail(n, d.is(n), fmt.Sprintf("write a whole number from %d to %d", low, high))
			return
		}
		*dst = T(v)
	}
}

// span is a closed interval of allowed numbers, or a half-open one without its low end.
type span struct {
	low, high float64
	// aboveLow: low itself is not allowed.
	aboveLow bool
}

func (s span) holds(v float64) bool {
	return v >= s.low && v <= s.high && !(s.aboveLow && v == s.low)
}

func (s span) String() string {
	low, high := strconv.FormatFloat(s.low, 'f', -1, 64), strconv.FormatFloat(s.high, 'f', -1, 64)
	if s.aboveLow {
		return "above " + low + " and at most " + high
	}
	return "from " + low + " to " + high
}

// number reads a number within a span.
func (d *decoder) number(dst *float64, allowed span) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if !isNumber(n) || err != nil || !allowed.holds(v) {
			d.fail(n, d.is(n), "write a number "+allowed.String())
			return
		}
		*dst = v
	}
}

// share reads "2%" or 0.02.
func (d *decoder) share(dst *float64) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, err := math.NaN(), error(nil)
		if m := percent.FindStringSubmatch(n.Value); m != nil && n.Kind == yaml.ScalarNode {
			v, err = strconv.ParseFloat(m[1]+"e-2", 64) // Not v/100, which would round twice.
		} else if isNumber(n) {
			v, err = strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		}
		if err != nil || !(v >= 0 && v <= 1) {
			d.fail(n, d.is(n), `write a share from 0% to 100%, such as "2%" or 0.02`)
			return
		}
		*dst = v
	}
}

// duration reads a duration with its unit, from low to a day.
func (d *decoder) duration(dst *time.Duration, low time.Duration) func(*yaml.Node) {
	return d.durationTo(dst, low, maxDuration)
}

// durationTo reads a duration with its unit, from low to high.
func (d *decoder) durationTo(dst *time.Duration, low, high time.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if isNumber(n) {
			d.fail(n, d.is(n)+" without a unit", fmt.Sprintf("write the unit, such as %ss or %sms", n.Value, n.Value))
			return
		}
		v, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			d.fail(n, d.is(n), `write a duration with its unit (h, m, s, ms, us), such as "300ms"`)
			return
		}
		if v < low || v > high {
			d.fail(n, d.is(n), fmt.Sprintf("write a duration from %v to %v", low, high))
			return
		}
		*dst = v
	}
}

// clock reads a time of the day, "09:00" to "24:00".
func (d *decoder) clock(dst *time.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, ok := parseClock(n.Value)
		if n.Kind != yaml.ScalarNode || !ok {
			d.fail(n, d.is(n), `write a time of the day from "00:00" to "24:00"`)
			return
		}
		*dst = v
	}
}

func parseClock(s string) (time.Duration, bool) {
	hours, minutes, ok := strings.Cut(s, ":")
	if !ok || len(hours) != 2 || len(minutes) != 2 {
		return 0, false
	}
	h, errH := strconv.ParseUint(hours, 10, 8)
	m, errM := strconv.ParseUint(minutes, 10, 8)
	v := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	return v, errH == nil && errM == nil && m < 60 && v <= day
}

// date reads "2026-11-27" as its midnight in UTC.
func (d *decoder) date(dst *time.Time) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, err := time.Parse(time.DateOnly, n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			d.fail(n, d.is(n), `write a date, such as 2026-11-27`)
			return
		}
		*dst = v
	}
}

// isNumber reports a plain decimal number. A number in quotes is text.
func isNumber(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	tag := n.ShortTag()
	return (tag == "!!int" || tag == "!!float") && decimal.MatchString(n.Value)
}
