package child

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxMessage is the largest message, and the largest batch of them, in bytes: body, and names, types and values of the attributes
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html, read November 2026).
const maxMessage = 1 << 20

const (
	maxEntries    = 10
	maxAttributes = 10
	maxDelay      = 900
)

// word is what may be an id of a group or a deduplication id, entryID that of an entry of a batch.
var (
	word    = regexp.MustCompile("^[A-Za-z0-9!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]{1,128}$")
	entryID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
)

// pack checks one entry and makes the message of it. Its id is set later.
func (e *sendEntry) pack(q *queue, now int64) (message, error) {
	m := message{body: e.MessageBody, group: e.MessageGroupId, dedup: e.MessageDeduplicationId}
	if len(e.MessageSystemAttributes) > 0 {
		return m, &failure{code: "UnsupportedOperation", query: "AWS.SimpleQueueService.UnsupportedOperation", message: "this emulator has no MessageSystemAttributes", status: http.StatusBadRequest}
	}
	if m.body == "" {
		return m, &failure{code: "MissingParameter", message: "MessageBody is missing", status: http.StatusBadRequest}
	}
	if !permitted(m.body) {
		return m, &failure{code: "InvalidMessageContents", message: "the body has a character that XML has not", status: http.StatusBadRequest}
	}
	var err error
	if m.attributes, err = e.attributes(); err != nil {
		return m, err
	}
	if limit := q.setting("MaximumMessageSize", maxMessage); m.size() > limit {
		return m, invalid("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", limit)
	}
	delay := q.setting("DelaySeconds", 0)
	if e.DelaySeconds != nil {
		if delay = *e.DelaySeconds; delay < 0 || delay > maxDelay || q.line.fifo {
			return m, invalid("DelaySeconds is %d: use 0 to %d, and none for a message of a FIFO queue", delay, maxDelay)
		}
	}
	if delay > 0 {
		m.until = now + int64(delay)*time.Second.Microseconds()
	}
	if q.line.fifo {
		return m, m.line(q)
	}
	if m.dedup != "" {
		return m, invalid("MessageDeduplicationId is for FIFO queues")
	}
	m.group = "" // fair queues are not emulated
	return m, nil
}

// line checks what a message of a FIFO queue needs besides.
func (m *message) line(q *queue) error {
	if m.dedup == "" && q.settings["ContentBasedDeduplication"] == "true" {
		sum := sha256.Sum256([]byte(m.body))
		m.dedup = hex.EncodeToString(sum[:])
	}
	if !word.MatchString(m.group) || !word.MatchString(m.dedup) {
		return invalid("a message of a FIFO queue needs a MessageGroupId and a MessageDeduplicationId of up to 128 letters, digits and punctuation")
	}
	return nil
}

// permitted reports whether a text has only characters that a message may have.
func permitted(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff
	})
}

// attributes are those of the entry, by name.
func (e *sendEntry) attributes() ([]attribute, error) {
	if len(e.MessageAttributes) > maxAttributes {
		return nil, invalid("a message has up to %d attributes", maxAttributes)
	}
	var all []attribute
	for name, v := range e.MessageAttributes {
		a := attribute{name: name, kind: v.DataType, value: v.StringValue}
		base, _, _ := strings.Cut(v.DataType, ".")
		if base == "Binary" {
			a.value = string(v.BinaryValue)
		}
		if name == "" || a.value == "" || !slices.Contains([]string{"String", "Number", "Binary"}, base) || base != "Binary" && !permitted(a.value) {
			return nil, invalid("The message attribute %q must have a type of String, Number or Binary, and a value.", name)
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b attribute) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// size is what counts for the limits.
func (m *message) size() int {
	n := len(m.body)
	for _, a := range m.attributes {
		n += len(a.name) + len(a.kind) + len(a.value)
	}
	return n
}

func sum(text string) string {
	digest := md5.Sum([]byte(text))
	return hex.EncodeToString(digest[:])
}

// sumAttributes is the digest of attributes
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html, "Calculating the MD5 message digest", read November 2026).
func sumAttributes(all []attribute) string {
	if len(all) == 0 {
		return ""
	}
	var b []byte
	long := func(text string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}
	for _, a := range all {
		long(a.name)
		long(a.kind)
		transport := byte(1)
		if strings.HasPrefix(a.kind, "Binary") {
			transport = 2
		}
		b = append(b, transport)
		long(a.value)
	}
	return sum(string(b))
}

// send stores messages, all in one write of the log. A message that a FIFO queue knows gets the answer of the first.
func (s *server) send(q *queue, messages []message) []sendResult {
	results := make([]sendResult, len(messages))
	s.store.do(func(st *store) []record {
		var records []record
		now := st.now().UnixMicro()
		q.forget(now)
		for i, m := range messages {
			results[i] = sendResult{MD5OfMessageBody: sum(m.body), MD5OfMessageAttributes: sumAttributes(m.attributes)}
			k, ok := q.dedup[m.scope(q)]
			if !ok {
				st.last++
				k = known{id: m.scope(q), messageID: newID(), number: st.last, at: now}
				if q.line.fifo {
					q.remember(k)
				}
				m.id = k.messageID
				records = append(records, record{op: opSend, queue: q.number, number: k.number, at: now, message: m})
			}
			results[i].MessageId = k.messageID
			if q.line.fifo {
				results[i].SequenceNumber = sequence(k.number)
			}
		}
		return records
	})
	return results
}

// scope is what a deduplication id is unique in: the queue, or the group.
func (m *message) scope(q *queue) string {
	if m.dedup != "" && q.settings["DeduplicationScope"] == "messageGroup" {
		return m.group + "\x00" + m.dedup
	}
	return m.dedup
}

// sequence is the number of a message as Amazon writes it: 20 digits.
func sequence(number uint64) string {
	text := strconv.FormatUint(number, 10)
	return strings.Repeat("0", 20-len(text)) + text
}

func (s *server) sendMessage(_ context.Context, in *sendEntry) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	m, err := s.pack(q, in)
	if err != nil {
		return nil, err
	}
	return &s.send(q, []message{m})[0], nil
}

func (s *server) pack(q *queue, e *sendEntry) (message, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return e.pack(q, s.store.now().UnixMicro())
}

// checkBatch says what is wrong with a batch as a whole.
func checkBatch(ids []string) error {
	switch {
	case len(ids) == 0:
		return &failure{code: "EmptyBatchRequest", query: "AWS.SimpleQueueService.EmptyBatchRequest", message: "the batch has no entries", status: http.StatusBadRequest}
	case len(ids) > maxEntries:
		return &failure{code: "TooManyEntriesInBatchRequest", query: "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
			message: "the batch has more than " + strconv.Itoa(maxEntries) + " entries", status: http.StatusBadRequest}
	}
	seen := make(map[string]bool)
	for _, id := range ids {
		if !entryID.MatchString(id) {
			return &failure{code: "InvalidBatchEntryId", query: "AWS.SimpleQueueService.InvalidBatchEntryId", message: "an entry has the id " + strconv.Quote(id), status: http.StatusBadRequest}
		}
		if seen[id] {
			return &failure{code: "BatchEntryIdsNotDistinct", query: "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", message: "two entries have the id " + id, status: http.StatusBadRequest}
		}
		seen[id] = true
	}
	return nil
}

// failed is an entry of a batch that could not be done.
func failed(id string, err error) failedEntry {
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{code: "InternalFailure", message: err.Error(), status: http.StatusInternalServerError}
	}
	return failedEntry{Id: id, Code: cmp.Or(f.query, f.code), Message: f.message, SenderFault: f.status < http.StatusInternalServerError}
}

func (s *server) sendMessageBatch(_ context.Context, in *sendBatchInput) (any, error) {
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
	out := batchOutput[sendResult]{Successful: []sendResult{}, Failed: []failedEntry{}}
	var messages []message
	var sent []string
	total := 0
	for i := range in.Entries {
		m, err := s.pack(q, &in.Entries[i])
		total += m.size()
		if err != nil {
			out.Failed = append(out.Failed, failed(ids[i], err))
			continue
		}
		messages, sent = append(messages, m), append(sent, ids[i])
	}
	if total > maxMessage {
		return nil, &failure{code: "BatchRequestTooLong", query: "AWS.SimpleQueueService.BatchRequestTooLong",
			message: "Batch requests cannot be longer than " + strconv.Itoa(maxMessage) + " bytes. You have sent " + strconv.Itoa(total) + " bytes.", status: http.StatusBadRequest}
	}
	if len(messages) > 0 {
		out.Successful = s.send(q, messages)
		for i := range out.Successful {
			out.Successful[i].Id = sent[i]
		}
	}
	return &out, nil
}

// encode is an attribute as the protocol has it.
func (a attribute) encode() attributeValue {
	if strings.HasPrefix(a.kind, "Binary") {
		return attributeValue{DataType: a.kind, BinaryValue: []byte(a.value)}
	}
	return attributeValue{DataType: a.kind, StringValue: a.value}
}
