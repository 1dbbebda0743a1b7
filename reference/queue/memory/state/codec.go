package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"floodproof/reference/queue"
)

// errShort: the bytes end within a field, or say of themselves that they are longer than they are.
var errShort = errors.New("too short")

// AppendCommand appends the binary form of a command.
func AppendCommand(b []byte, c *Command) []byte {
	b = append(b, byte(c.Op))
	b = appendInts(b, int64(c.Max), c.ID, c.Token, int64(c.For))
	b = appendString(appendString(b, c.Name), c.EventID)
	b = binary.AppendUvarint(b, uint64(len(c.Jobs)))
	for i := range c.Jobs {
		b = appendJob(b, &c.Jobs[i])
	}
	if c.Op == Events {
		b = appendString(appendString(appendString(b, c.Filter.Provider), string(c.Filter.State)), c.Filter.Type)
		b = appendTime(appendTime(b, c.Filter.Since), c.Filter.Until)
	}
	return b
}

// ReadCommand reads one command from the beginning of b and returns what follows it. It keeps nothing of b.
func ReadCommand(b []byte) (c Command, rest []byte, err error) {
	r := reader{b: b}
	c.Op = Op(r.byte())
	var limit, length int64
	r.ints(&limit, &c.ID, &c.Token, &length)
	c.Max, c.For = int(limit), time.Duration(length)
	c.Name, c.EventID = r.string(), r.string()
	for range r.count() {
		c.Jobs = append(c.Jobs, r.job())
	}
	if c.Op == Events {
		c.Filter = queue.EventFilter{Provider: r.string(), State: queue.State(r.string()), Type: r.string(), Since: r.time(), Until: r.time()}
	}
	if r.err != nil {
		return Command{}, nil, fmt.Errorf("read a command: %w", r.err)
	}
	return c, r.b, nil
}

// AppendResult appends the binary form of a result.
func AppendResult(b []byte, r *Result) []byte {
	b = appendInts(b, asInt(r.Lost), r.Next, r.Place)
	b = appendString(b, r.Refused)
	b = appendTime(b, r.Deadline)
	b = binary.AppendUvarint(b, uint64(len(r.Leases)))
	for i := range r.Leases {
		l := &r.Leases[i]
		b = appendJob(b, &l.Job)
		b = appendTime(appendInts(b, l.ID, l.Token, int64(l.Attempt)), l.Deadline)
	}
	b = appendStrings(b, r.Steps)
	b = binary.AppendUvarint(b, uint64(len(r.Letters)))
	for i := range r.Letters {
		l := &r.Letters[i]
		b = appendTime(appendInts(appendString(appendJob(b, &l.Job), l.Reason), int64(l.Attempts)), l.At)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Events)))
	for i := range r.Events {
		b = appendEvent(b, &r.Events[i])
	}
	b = binary.AppendUvarint(b, uint64(len(r.Depth.Lanes)))
	for _, l := range r.Depth.Lanes {
		b = appendInts(appendString(b, l.Lane), l.Waiting, l.Leased, l.Dead, l.Done, l.Expired, int64(l.Oldest), int64(l.Held))
	}
	return b
}

// ReadResult reads a result, which is all of b. It keeps nothing of b.
func ReadResult(b []byte) (Result, error) {
	r := reader{b: b}
	var out Result
	var lost int64
	r.ints(&lost, &out.Next, &out.Place)
	out.Lost, out.Refused, out.Deadline = lost != 0, r.string(), r.time()
	for range r.count() {
		l := queue.Lease{Job: r.job()}
		var attempt int64
		r.ints(&l.ID, &l.Token, &attempt)
		l.Attempt, l.Deadline = int(attempt), r.time()
		out.Leases = append(out.Leases, l)
	}
	out.Steps = r.strings()
	for range r.count() {
		l := queue.DeadLetter{Job: r.job(), Reason: r.string()}
		var attempts int64
		r.ints(&attempts)
		l.Attempts, l.At = int(attempts), r.time()
		out.Letters = append(out.Letters, l)
	}
	for range r.count() {
		out.Events = append(out.Events, r.event())
	}
	for range r.count() {
		l := queue.LaneDepth{Lane: r.string()}
		var oldest, held int64
		r.ints(&l.Waiting, &l.Leased, &l.Dead, &l.Done, &l.Expired, &oldest, &held)
		l.Oldest, l.Held = time.Duration(oldest), time.Duration(held)
		out.Depth.Lanes = append(out.Depth.Lanes, l)
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes too long", len(r.b))
	}
	if r.err != nil {
		return Result{}, fmt.Errorf("read a result: %w", r.err)
	}
	out.Depth = total(out.Depth.Lanes)
	return out, nil
}

// Size is how many bytes a job may need in binary form, at most.
func Size(j *queue.Job) int {
	const numbers = 128
	return len(j.Payload) + len(j.Provider) + len(j.EventID) + len(j.DeliveryID) + len(j.Type) + len(j.Resource) + len(j.Lane) + len(j.DeadOnArrival) + numbers
}

func appendJob(b []byte, j *queue.Job) []byte {
	for _, text := range [...]string{j.Provider, j.EventID, j.DeliveryID, j.Type, j.Resource, j.Lane, j.DeadOnArrival} {
		b = appendString(b, text)
	}
	b = appendInts(b, j.Version, int64(j.Debounce.Quiet), int64(j.Debounce.MaxWait), int64(j.Debounce.Edge))
	b = appendTime(b, j.ReceivedAt)
	b = binary.AppendUvarint(b, uint64(len(j.Payload)))
	return append(b, j.Payload...)
}

func appendStrings(b []byte, texts []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, text := range texts {
		b = appendString(b, text)
	}
	return b
}

func appendInts(b []byte, values ...int64) []byte {
	for _, v := range values {
		b = binary.AppendVarint(b, v)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTime keeps the instant and not the zone.
func appendTime(b []byte, t time.Time) []byte {
	return appendInts(b, t.Unix(), int64(t.Nanosecond()))
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// reader reads fields until the first error, and zero values after it.
type reader struct {
	b   []byte
	err error
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// take returns the next n bytes, or nil.
func (r *reader) take(n uint64) []byte {
	if r.err == nil && n > uint64(len(r.b)) {
		r.err, r.b = errShort, nil
	}
	if r.err != nil {
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) ints(values ...*int64) {
	for _, v := range values {
		n := 0
		if *v, n = binary.Varint(r.b); n <= 0 {
			*v = 0
			r.fail()
			return
		}
		r.b = r.b[n:]
	}
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = errShort
	}
	r.b = nil
}

// count is how many things follow, of which each takes a byte at least.
func (r *reader) count() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > uint64(len(r.b)-n) {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) string() string { return string(r.take(r.count())) }

func (r *reader) strings() (texts []string) {
	for range r.count() {
		texts = append(texts, r.string())
	}
	return texts
}

func (r *reader) time() time.Time {
	var seconds, nanoseconds int64
	r.ints(&seconds, &nanoseconds)
	return time.Unix(seconds, nanoseconds)
}

func (r *reader) job() (j queue.Job) {
	for _, text := range [...]*string{&j.Provider, &j.EventID, &j.DeliveryID, &j.Type, &j.Resource, &j.Lane, &j.DeadOnArrival} {
		*text = r.string()
	}
	var quiet, most, edge int64
	r.ints(&j.Version, &quiet, &most, &edge)
	j.Debounce = queue.Debounce{Quiet: time.Duration(quiet), MaxWait: time.Duration(most), Edge: queue.Edge(edge)}
	j.ReceivedAt = r.time()
	j.Payload = bytes.Clone(r.take(r.count()))
	return j
}
