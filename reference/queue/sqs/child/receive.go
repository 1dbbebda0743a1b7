package child

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// number is a number that may be given, within bounds.
func number(name string, given *int, otherwise, least, most int) (int, error) {
	if given == nil {
		return otherwise, nil
	}
	if *given < least || *given > most {
		return 0, invalid("%s is %d: use %d to %d", name, *given, least, most)
	}
	return *given, nil
}

func (s *server) receiveMessage(ctx context.Context, in *receiveInput) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if in.ReceiveRequestAttemptId != "" {
		return nil, &failure{code: "UnsupportedOperation", query: "AWS.SimpleQueueService.UnsupportedOperation", message: "this emulator has no ReceiveRequestAttemptId", status: http.StatusBadRequest}
	}
	s.store.mu.Lock()
	visibility, patience := q.setting("VisibilityTimeout", 30), q.setting("ReceiveMessageWaitTimeSeconds", 0)
	s.store.mu.Unlock()
	limit, err := number("MaxNumberOfMessages", in.MaxNumberOfMessages, 1, 1, maxEntries)
	if err != nil {
		return nil, err
	}
	if visibility, err = number("VisibilityTimeout", in.VisibilityTimeout, visibility, 0, limits()["VisibilityTimeout"][2]); err != nil {
		return nil, err
	}
	if patience, err = number("WaitTimeSeconds", in.WaitTimeSeconds, patience, 0, limits()["ReceiveMessageWaitTimeSeconds"][2]); err != nil {
		return nil, err
	}
	got, err := s.store.receive(ctx, q, limit, time.Duration(visibility)*time.Second, time.Duration(patience)*time.Second)
	if err != nil {
		return nil, err
	}
	var out receiveOutput
	for i := range got {
		out.Messages = append(out.Messages, got[i].encode(q, in))
	}
	return &out, nil
}

// encode is a message with the attributes that were asked for.
func (r *received) encode(q *queue, in *receiveInput) receivedMessage {
	m := &r.message
	out := receivedMessage{MessageId: m.id, ReceiptHandle: r.handle, Body: m.body, MD5OfBody: sum(m.body)}
	all := map[string]string{
		"ApproximateReceiveCount":          strconv.Itoa(r.count),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(r.first/1000, 10),
		"SentTimestamp":                    strconv.FormatInt(r.at/1000, 10),
		"SenderId":                         account,
	}
	if q.line.fifo {
		all["MessageGroupId"], all["MessageDeduplicationId"], all["SequenceNumber"] = m.group, m.dedup, sequence(r.number)
	}
	asked := append(slices.Clone(in.AttributeNames), in.MessageSystemAttributeNames...)
	for name, value := range all {
		if slices.Contains(asked, "All") || slices.Contains(asked, name) {
			if out.Attributes == nil {
				out.Attributes = make(map[string]string)
			}
			out.Attributes[name] = value
		}
	}
	var given []attribute
	for _, a := range m.attributes {
		if !wanted(in.MessageAttributeNames, a.name) {
			continue
		}
		if out.MessageAttributes == nil {
			out.MessageAttributes = make(map[string]attributeValue)
		}
		out.MessageAttributes[a.name] = a.encode()
		given = append(given, a)
	}
	out.MD5OfMessageAttributes = sumAttributes(given)
	return out
}

// wanted reports whether an attribute was asked for: by name, by All or .*, or by a beginning and .*.
func wanted(names []string, name string) bool {
	return slices.ContainsFunc(names, func(asked string) bool {
		prefix, ok := strings.CutSuffix(asked, ".*")
		return asked == "All" || asked == name || ok && strings.HasPrefix(name, prefix)
	})
}

// lookup finds what a handle is about, with the lock held. Neither an item nor an error: the message is gone, or somebody else's by now.
func (st *store) lookup(q *queue, text string) (*item, error) {
	number, message, token, ok := readHandle(text)
	if !ok || number != q.number {
		return nil, &failure{code: "ReceiptHandleIsInvalid", message: "the receipt handle is none of this queue", status: http.StatusNotFound}
	}
	m := q.items[message]
	if m == nil || m.gone || m.token != token {
		return nil, nil
	}
	return m, nil
}

// remove deletes a message, if the handle is that of its last receiver. One that is not changes nothing, without an error, as with Amazon; a FIFO queue says that it has expired.
func (s *server) remove(q *queue, text string) error {
	var failed error
	s.store.do(func(st *store) []record {
		q.line.expire(st.now().UnixMicro())
		m, err := st.lookup(q, text)
		switch {
		case err != nil:
			failed = err
		case m != nil && (m.index >= 0 || !q.line.fifo):
			q.line.remove(m) // nobody receives it while this is written
			return []record{{op: opDelete, queue: q.number, number: m.number}}
		case q.line.fifo:
			failed = invalid("Value %s for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", text)
		}
		return nil
	})
	return failed
}

func (s *server) deleteMessage(_ context.Context, in *handleEntry) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return nil, s.remove(q, in.ReceiptHandle)
}

// each does one thing for each entry of a batch, all at once, so that they share a write of the log.
func (s *server) each(in *handleBatchInput, do func(*queue, *handleEntry) error) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	var ids []string
	for i := range in.Entries {
		ids = append(ids, in.Entries[i].Id)
	}
	if err := checkBatch(ids); err != nil {
		return nil, err
	}
	errs := make([]chan error, len(in.Entries))
	for i := range in.Entries {
		errs[i] = make(chan error, 1)
		go func() { errs[i] <- do(q, &in.Entries[i]) }()
	}
	out := batchOutput[idResult]{Successful: []idResult{}, Failed: []failedEntry{}}
	for i, id := range ids {
		if err := <-errs[i]; err != nil {
			out.Failed = append(out.Failed, failed(id, err))
			continue
		}
		out.Successful = append(out.Successful, idResult{Id: id})
	}
	return &out, nil
}

func (s *server) deleteMessageBatch(_ context.Context, in *handleBatchInput) (any, error) {
	return s.each(in, func(q *queue, e *handleEntry) error { return s.remove(q, e.ReceiptHandle) })
}

// hide changes when a received message becomes visible again. That is kept in memory, as all that is about receivers.
func (s *server) hide(q *queue, e *handleEntry) error {
	seconds, err := number("VisibilityTimeout", e.VisibilityTimeout, -1, 0, limits()["VisibilityTimeout"][2])
	if err != nil {
		return err
	}
	if seconds < 0 {
		return &failure{code: "MissingParameter", message: "VisibilityTimeout is missing", status: http.StatusBadRequest}
	}
	st := s.store
	st.mu.Lock()
	defer st.mu.Unlock()
	now := st.now().UnixMicro()
	q.line.expire(now)
	m, err := st.lookup(q, e.ReceiptHandle)
	if err != nil {
		return err
	}
	if m == nil || m.index < 0 {
		return &failure{code: "MessageNotInflight", query: "AWS.SimpleQueueService.MessageNotInflight", message: "the message is not received, or by somebody else", status: http.StatusBadRequest}
	}
	q.line.hide(m, now+int64(seconds)*time.Second.Microseconds())
	q.line.expire(now)
	q.wake()
	return nil
}

func (s *server) changeVisibility(_ context.Context, in *handleEntry) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return nil, s.hide(q, in)
}

func (s *server) changeVisibilityBatch(_ context.Context, in *handleBatchInput) (any, error) {
	return s.each(in, s.hide)
}
