package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
)

const (
	// patience is how long a server may take to answer a request before it counts as gone.
	patience = 10 * time.Second
	// The client finds out that a server hangs after about three of these.
	pingEvery = 3 * time.Second
)

// errDisconnected is why calls end that were under way when the connection broke. What they had sent may have been done.
var errDisconnected = errors.New("the connection to the server broke")

// errTooMany: a question has more answers than the server gives.
var errTooMany = errors.New("too many answers")

// link is the connection. The client reconnects by itself; a call that was under way when it broke fails at once, because its answer can never come.
type link struct {
	conn   *client.Conn
	stream string
	replicas

	mu     sync.Mutex
	up     context.Context // ends when the connection breaks; there is a new one when it is back
	broken context.CancelCauseFunc
}

func dial(ctx context.Context, url, stream string, options []client.Option) (*link, error) {
	l := &link{stream: stream}
	l.renew()
	all := append([]client.Option{
		client.Name("floodproof"), client.MaxReconnects(-1), client.ReconnectWait(50 * time.Millisecond), client.ReconnectJitter(50*time.Millisecond, 0),
		// Nothing is kept back for the next connection: it would be sent after its caller was told that it failed.
		client.ReconnectBufSize(-1),
		client.PingInterval(pingEvery), client.MaxPingsOutstanding(2), client.Timeout(5 * time.Second),
		client.DisconnectErrHandler(func(_ *client.Conn, err error) { l.lose(err) }),
		client.ReconnectHandler(func(*client.Conn) { l.renew() }),
		client.ErrorHandler(func(*client.Conn, *client.Subscription, error) {}), // each call reports its own
	}, options...)
	if deadline, ok := ctx.Deadline(); ok {
		all = append(all, client.Timeout(min(5*time.Second, max(time.Until(deadline), time.Millisecond))))
	}
	conn, err := client.Connect(url, all...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", url, err)
	}
	l.conn = conn
	return l, nil
}

func (l *link) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up == nil || l.up.Err() != nil {
		l.up, l.broken = context.WithCancelCause(context.Background())
	}
}

func (l *link) lose(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		err = errors.New("closed")
	}
	l.broken(fmt.Errorf("%w: %w", errDisconnected, err))
}

// bound gives a context that ends with ctx, with the connection, and after patience if that is more than 0.
func (l *link) bound(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	up := l.up
	l.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(up, func() { cancel(context.Cause(up)) })
	end := func() { stop(); cancel(nil) }
	if patience <= 0 {
		return ctx, end
	}
	ctx, late := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	return ctx, func() { late(); end() }
}

// close ends the connection, after what was sent without an answer, the acknowledgements, has left.
func (l *link) close() {
	_ = l.conn.FlushTimeout(time.Second) // a message whose acknowledgement is lost comes again, and is found to be settled
	l.conn.Close()
	l.lose(nil)
}

// apiError is an answer that says that nothing was done.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return e.Description + " (" + strconv.Itoa(e.ErrCode) + ")" }

// The errors that somebody here reacts to (https://github.com/nats-io/nats-server/blob/v2.15.3/server/errors.json).
const (
	codeWrongLast     = 10071 // an expected last sequence was not the last
	codeWrongLastToo  = 10164 // the same, from a cluster
	codeStreamMissing = 10059
	codeTooLarge      = 10199 // the batch has more messages than the server takes
)

func hasCode(err error, codes ...int) bool {
	var api *apiError
	if !errors.As(err, &api) {
		return false
	}
	for _, code := range codes {
		if api.ErrCode == code {
			return true
		}
	}
	return false
}

// ask sends a request to JetStream's API and reads its answer into to.
func (l *link) ask(ctx context.Context, subject string, question, to any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return l.request(ctx, &client.Msg{Subject: subject, Data: body}, to)
}

func (l *link) request(ctx context.Context, msg *client.Msg, to any) error {
	ctx, end := l.bound(ctx, patience)
	defer end()
	answer, err := l.conn.RequestMsgWithContext(ctx, msg)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return err
	}
	var failure struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &failure); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	if failure.Error != nil {
		return failure.Error
	}
	return json.Unmarshal(answer.Data, to)
}

// read is a question for messages as they stand in the stream (https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-31.md).
type read struct {
	Seq      uint64   `json:"seq,omitempty"`
	NextFor  string   `json:"next_by_subj,omitempty"`
	MultiFor []string `json:"multi_last,omitempty"`
	Batch    int      `json:"batch,omitempty"`
	MaxBytes int      `json:"max_bytes,omitempty"`
}

// stored is a message as it stands in the stream.
type stored struct {
	subject string
	seq     uint64
	at      time.Time // the server's clock when it was stored
	data    []byte
}

// get asks for messages, and returns those that came. more reports that the server stopped before the end.
func (l *link) get(ctx context.Context, question read) (messages []stored, more bool, err error) {
	messages, last, err := l.getToEnd(ctx, question)
	return messages, last.more, err
}

// getToEnd is get, with what the server says at the end.
func (l *link) getToEnd(ctx context.Context, question read) (messages []stored, at end, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, end{}, err
	}
	ctx, cancel := l.bound(ctx, patience)
	defer cancel()
	sub, err := l.conn.SubscribeSync(l.conn.NewInbox())
	if err != nil {
		return nil, end{}, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, end{}, err
	}
	if err := l.conn.PublishRequest("$JS.API.DIRECT.GET."+l.stream, sub.Subject, body); err != nil {
		return nil, end{}, err
	}
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return nil, end{}, fmt.Errorf("read the stream: %w", err)
		}
		switch status := msg.Header.Get("Status"); status {
		case "":
			m, err := readStored(msg)
			if err != nil {
				return nil, end{}, err
			}
			messages = append(messages, m)
		case "204": // the end of the batch
			return messages, readEnd(msg), nil
		case "404":
			return messages, end{}, nil
		case "413":
			return nil, end{}, errTooMany
		default:
			return nil, end{}, fmt.Errorf("read the stream: %s %s", status, msg.Header.Get("Description"))
		}
	}
}

func readStored(msg *client.Msg) (stored, error) {
	seq, err := strconv.ParseUint(msg.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return stored{}, fmt.Errorf("read the stream: sequence: %w", err)
	}
	at, err := time.Parse(time.RFC3339Nano, msg.Header.Get("Nats-Time-Stamp"))
	if err != nil {
		return stored{}, fmt.Errorf("read the stream: time: %w", err)
	}
	return stored{subject: msg.Header.Get("Nats-Subject"), seq: seq, at: at, data: msg.Data}, nil
}

// maxFilters is how many subjects one question names: the server answers with up to 1024 messages.
const maxFilters = 256

// last finds the last message of each of some subjects, which may be patterns. Those that have none are not among the answers.
func (l *link) last(ctx context.Context, filters []string) ([]stored, error) {
	var all []stored
	for len(filters) > 0 {
		n := min(len(filters), maxFilters)
		question := read{MultiFor: filters[:n]}
		for more := true; more; {
			var messages []stored
			var err error
			if messages, more, err = l.getFresh(ctx, question); err != nil {
				return nil, err
			}
			if len(messages) == 0 {
				break
			}
			all = append(all, messages...)
			question.Seq = messages[len(messages)-1].seq + 1
		}
		filters = filters[n:]
	}
	return all, nil
}
