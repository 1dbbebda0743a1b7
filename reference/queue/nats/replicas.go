package nats

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
)

// maxReplicas is the server's own limit.
const maxReplicas = 5

const (
	// heartbeat is how often a consumer with a request that waits says that it is there, and silence how long nothing is heard of it until another server has taken its place: the
	// connection may be to a third one, and tells nothing.
	heartbeat = time.Second
	silence   = 4 * heartbeat
	// freshPause is the pause before a replica is asked again, another one perhaps.
	freshPause = 10 * time.Millisecond
)

var (
	// errSilent: the request is lost with the server that had it.
	errSilent = errors.New("the lane's consumer says nothing any more")
	// errStale: the replicas that answer lack what was there before.
	errStale = errors.New("the replica that answers is behind")
)

// replicas is what has to be known of a stream that several servers keep. Messages are stored through the one that leads, but read from any, which may be behind: one that has just come
// back serves readers before it has everything. A job that is missing there is not gone. So what is read must be as new as the newest that this handle has seen.
//
// The zero value is a stream on one server.
type replicas struct {
	// marked is the subject of the message that is always there.
	marked string
	// newest is the highest sequence that was seen.
	newest atomic.Uint64
}

// several reports whether there is more than one.
func (r *replicas) several() bool { return r.marked != "" }

// saw notes a sequence.
func (r *replicas) saw(seq uint64) {
	for {
		newest := r.newest.Load()
		if seq <= newest || r.newest.CompareAndSwap(newest, seq) {
			return
		}
	}
}

// mark stores the message that is always there. Where nothing is found a server does not say how new that is; with this one something always is. A stream that was just made is not known
// to every server yet.
func (l *link) mark(ctx context.Context, subject string) error {
	ctx, cancel := l.bound(ctx, patience)
	defer cancel()
	var ack struct {
		Seq uint64 `json:"seq"`
	}
	err := l.request(ctx, &client.Msg{Subject: subject}, &ack)
	for errors.Is(err, client.ErrNoResponders) && pause(ctx, freshPause) == nil {
		err = l.request(ctx, &client.Msg{Subject: subject}, &ack)
	}
	if err != nil {
		return err
	}
	l.marked = subject
	l.saw(ack.Seq)
	return nil
}

// end is what a server says after the last message of an answer: whether there are more, and up to which sequence it has the stream, 0 if it does not say.
type end struct {
	more bool
	upTo uint64
}

func readEnd(msg *client.Msg) end {
	upTo, err := strconv.ParseUint(msg.Header.Get("Nats-UpTo-Sequence"), 10, 64)
	if err != nil {
		upTo = 0 // an answer to another kind of question
	}
	return end{more: msg.Header.Get("Nats-Num-Pending") != "0", upTo: upTo}
}

// getFresh is get for the last messages of subjects, from a replica that has all that was seen before the question.
func (l *link) getFresh(ctx context.Context, question read) (messages []stored, more bool, err error) {
	if !l.several() {
		return l.get(ctx, question)
	}
	newest := l.newest.Load()
	if question.Seq == 0 {
		question.MultiFor = append(question.MultiFor[:len(question.MultiFor):len(question.MultiFor)], l.marked)
	}
	ctx, cancel := l.bound(ctx, patience)
	defer cancel()
	for stale := error(nil); ; stale = errStale {
		found, at, err := l.getToEnd(ctx, question)
		if err != nil {
			return nil, false, errors.Join(stale, err)
		}
		if at.upTo >= newest {
			l.saw(at.upTo)
			return l.withoutMark(found), at.more, nil
		}
		if pause(ctx, freshPause) != nil {
			return nil, false, errors.Join(errStale, context.Cause(ctx))
		}
	}
}

func (l *link) withoutMark(found []stored) []stored {
	for i, m := range found {
		if m.subject == l.marked {
			return append(found[:i], found[i+1:]...)
		}
	}
	return found
}

// next waits for the next message of a request, with replicas no longer than a consumer that is there can be silent.
func (l *link) next(ctx context.Context, sub *client.Subscription) (*client.Msg, error) {
	if l.several() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, silence, errSilent)
		defer cancel()
	}
	msg, err := sub.NextMsgWithContext(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return msg, err
}
