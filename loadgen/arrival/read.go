package arrival

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	// maxLine bounds a line of a recording. A line may hold a whole recorded request.
	maxLine = 64 << 20
	// header is what the first line of a recording by floodproof is.
	header = "floodproof-recording"
	// maxSpan bounds how far times may lie apart; what is a year away is a slip.
	maxSpan = 366 * Day
	// maxProblems is how many lines are reported at once.
	maxProblems = 10
)

// form is how a recording writes its instants.
type form uint8

const (
	durations form = iota + 1
	timestamps
	objects
)

func (f form) String() string {
	switch f {
	case durations:
		return "a duration"
	case timestamps:
		return "a time"
	default:
		return "a JSON object"
	}
}

// formOf tells by its first characters how a line is meant.
func formOf(line []byte) form {
	switch {
	case line[0] == '{':
		return objects
	case len(line) > 4 && line[4] == '-': // The year. No duration has a dash there.
		return timestamps
	default:
		return durations
	}
}

// ReadTrace reads recorded instants, one per line and all in the form of the first:
//
//   - a duration from midnight, "9h3m0.25s";
//   - a time by RFC 3339, "2026-11-27T09:03:00.25Z";
//   - a JSON object whose field "at" is such a time, as in the recordings of floodproof; its other fields are not looked at.
//
// Empty lines, those that begin with # and the header of a recording are skipped. Times become offsets from the midnight, UTC, before the earliest of
// them. The instants come back sorted: a recorder with several connections writes them down a little out of order.
//
// The name is what errors call the file. They say which lines are wrong and why, for the first ten of them, in the form "name:2: why"; or wrap that of the
// reader.
func ReadTrace(name string, r io.Reader) ([]time.Duration, error) {
	p := traceParser{name: name}
	b := bufio.NewScanner(r)
	b.Buffer(nil, maxLine)
	for b.Scan() && len(p.errs) < maxProblems {
		p.line(bytes.TrimSpace(b.Bytes()))
	}
	if err := b.Err(); errors.Is(err, bufio.ErrTooLong) {
		p.errs = append(p.errs, fmt.Errorf("%s:%d: longer than %d bytes", name, p.lines+1, maxLine))
	} else if err != nil {
		p.errs = append(p.errs, fmt.Errorf("read %s: %w", name, err))
	}
	if len(p.errs) == 0 && len(p.instants) == 0 {
		p.errs = append(p.errs, fmt.Errorf("%s:1: no instant in the whole trace; write one per line", name))
	}
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	slices.Sort(p.instants)
	if p.form != durations {
		p.fromMidnight()
	}
	return p.instants, nil
}

// traceParser collects the instants of a recording.
type traceParser struct {
	name  string
	form  form
	lines int
	// first is the first line's time, from which the other times are counted at first.
	first    time.Time
	instants []time.Duration
	errs     []error
}

// line takes one line without its spaces.
func (p *traceParser) line(line []byte) {
	p.lines++
	if len(line) == 0 || line[0] == '#' {
		return
	}
	f := formOf(line)
	if p.form == 0 {
		p.form = f
	}
	if f != p.form {
		p.fail(fmt.Errorf("%s after lines with %s; write all in one form", f, p.form))
		return
	}
	switch at, err := p.instant(line); {
	case errors.Is(err, errHeader):
	case err != nil:
		p.fail(err)
	default:
		p.instants = append(p.instants, at)
	}
}

func (p *traceParser) fail(err error) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %w", p.name, p.lines, err))
}

// instant reads one line.
func (p *traceParser) instant(line []byte) (time.Duration, error) {
	switch p.form {
	case durations:
		d, err := time.ParseDuration(string(line))
		if err == nil && d < 0 {
			err = fmt.Errorf("duration %q is before midnight", line)
		}
		return d, err
	case timestamps:
		at, err := time.Parse(time.RFC3339Nano, string(line))
		if err != nil {
			return 0, err
		}
		return p.since(at)
	default:
		at, err := atOf(line)
		if err != nil {
			return 0, err
		}
		return p.since(at)
	}
}

// errHeader says that a line is the header of a recording and no instant.
var errHeader = errors.New("the header of a recording")

// atOf reads the time of a JSON object.
func atOf(line []byte) (time.Time, error) {
	var object struct {
		At   *time.Time `json:"at"`
		Kind any        `json:"kind"`
	}
	switch err := json.Unmarshal(line, &object); {
	case err != nil:
		return time.Time{}, fmt.Errorf("read JSON: %w", err)
	case object.At != nil:
		return *object.At, nil
	case object.Kind == header:
		return time.Time{}, errHeader
	default:
		return time.Time{}, errors.New(`no field "at" with a time`)
	}
}

// since counts a time from the first.
func (p *traceParser) since(at time.Time) (time.Duration, error) {
	if p.first.IsZero() {
		p.first = at
	}
	since := at.Sub(p.first)
	if since < -maxSpan || since > maxSpan {
		return 0, fmt.Errorf("%s is more than a year away from the first line", at.Format(time.RFC3339))
	}
	return since, nil
}

// fromMidnight counts the instants, which are sorted, from the midnight before the earliest.
func (p *traceParser) fromMidnight() {
	earliest := p.first.Add(p.instants[0])
	shift := earliest.Sub(earliest.Truncate(Day)) - p.instants[0]
	for i := range p.instants {
		p.instants[i] += shift
	}
}
