package child

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is the server's, which the tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// emulator is a server in this process, and Amazon's own client as its judge: it checks the digests, and decodes the answers.
type emulator struct {
	*sqs.Client

	t     testing.TB
	dir   string
	clock *clock
	store *store
	stop  func()
}

func start(t testing.TB) *emulator {
	e := &emulator{t: t, dir: t.TempDir(), clock: &clock{now: time.Unix(1_790_000_000, 0)}}
	e.open()
	t.Cleanup(func() { e.stop() })
	return e
}

func (e *emulator) open() {
	e.t.Helper()
	st, err := openStore(e.dir, true, e.clock.Now)
	if err != nil {
		e.t.Fatal(err)
	}
	s := &server{store: st, storage: StorageSync}
	h := httptest.NewServer(s)
	s.host = strings.TrimPrefix(h.URL, "http://")
	e.store = st
	e.Client = sqs.New(sqs.Options{
		BaseEndpoint: aws.String(h.URL), Region: "local", HTTPClient: h.Client(), Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	e.stop = func() {
		h.Close()
		if err := st.close(); err != nil {
			e.t.Error(err)
		}
	}
}

// reopen starts a new server on the same files.
func (e *emulator) reopen() {
	e.t.Helper()
	e.stop()
	e.open()
}

func (e *emulator) create(name string, attributes map[string]string) string {
	e.t.Helper()
	out, err := e.CreateQueue(e.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		e.t.Fatal(err)
	}
	return *out.QueueUrl
}

func (e *emulator) send(queueURL string, bodies ...string) {
	e.t.Helper()
	for _, body := range bodies {
		if _, err := e.SendMessage(e.t.Context(), &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: &body}); err != nil {
			e.t.Fatal(err)
		}
	}
}

// ordered sends a message to a FIFO queue; its id for deduplication is its body. It returns the message's id.
func (e *emulator) ordered(queueURL, group, body string) string {
	e.t.Helper()
	out, err := e.SendMessage(e.t.Context(), &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &body})
	if err != nil {
		e.t.Fatal(err)
	}
	return *out.MessageId
}

func (e *emulator) receive(queueURL string, limit int32) []types.Message {
	e.t.Helper()
	out, err := e.ReceiveMessage(e.t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &queueURL, MaxNumberOfMessages: limit, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return out.Messages
}

// want receives and compares the bodies.
func (e *emulator) want(queueURL string, bodies ...string) []types.Message {
	e.t.Helper()
	got := e.receive(queueURL, 10)
	var texts []string
	for _, m := range got {
		texts = append(texts, *m.Body)
	}
	if strings.Join(texts, " ") != strings.Join(bodies, " ") {
		e.t.Fatalf("received %q, want %q", texts, bodies)
	}
	return got
}

func (e *emulator) remove(queueURL string, m types.Message) error {
	_, err := e.DeleteMessage(e.t.Context(), &sqs.DeleteMessageInput{QueueUrl: &queueURL, ReceiptHandle: m.ReceiptHandle})
	return err
}

func (e *emulator) attribute(queueURL, name string) string {
	e.t.Helper()
	out, err := e.GetQueueAttributes(e.t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &queueURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeName(name)}})
	if err != nil {
		e.t.Fatal(err)
	}
	return out.Attributes[name]
}

// wantCode asserts the code of an error, which is that of the older protocol where the two differ by a prefix.
func wantCode(t testing.TB, what string, err error, code string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || strings.TrimPrefix(api.ErrorCode(), "AWS.SimpleQueueService.") != code {
		t.Errorf("%s: got error %v, want %s", what, err, code)
	}
}

func fifo() map[string]string { return map[string]string{"FifoQueue": "true"} }

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"-port=9324"}, {"-dir=x"}, {"-dir=x", "-port=70000"}, {"-dir=x", "-port=1", "-storage=paper"}, {"-unknown"}} {
		var out, complaint bytes.Buffer
		if code := run(args, &out, &complaint); code != 2 || complaint.Len() == 0 {
			t.Errorf("%q: got exit code %d and %q, want 2 and a reason", args, code, complaint.String())
		}
	}
}

func TestVersion(t *testing.T) {
	var out, complaint bytes.Buffer
	if code := run([]string{"-version"}, &out, &complaint); code != 0 || strings.TrimSpace(out.String()) != Version() || !strings.Contains(Version(), "emulator") {
		t.Errorf("-version: got exit code %d, %q, %q", code, out.String(), complaint.String())
	}
}

func TestWithParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parent atomic.Int64
		parent.Store(7)
		ctx, stop := withParent(t.Context(), func() int { return int(parent.Load()) }, time.Second)
		defer stop()
		<-time.After(10 * time.Second) // of the bubble's clock
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("ended although its parent is there")
		}
		parent.Store(1)
		<-time.After(2 * time.Second)
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("goes on as an orphan")
		}
	})
}

// TestReceiveWaits: whoever waits gets what is sent, what was delayed when that is due, and what becomes visible again when it does, at that very instant.
func TestReceiveWaits(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		st, err := openStore(dir, false, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		st.do(func(*store) []record {
			return []record{{op: opQueue, queue: 1, name: "q", settings: map[string]string{}}}
		})
		s, q := &server{store: st}, st.queues["q"]
		for _, wait := range []time.Duration{2 * time.Second, 15 * time.Second, 4 * time.Second} {
			begin := time.Now()
			switch wait {
			case 2 * time.Second:
				time.AfterFunc(wait, func() { s.send(q, []message{{body: "sent later"}}) })
			case 15 * time.Second: // only what was received before is there
			default:
				s.send(q, []message{{body: "delayed", until: begin.Add(wait).UnixMicro()}})
			}
			got, err := st.receive(t.Context(), q, 1, 15*time.Second, 20*time.Second)
			if took := time.Since(begin); err != nil || len(got) != 1 || took != wait {
				t.Fatalf("got %d messages and error %v after %v, want one after %v", len(got), err, took, wait)
			}
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := st.receive(ctx, q, 1, 0, 20*time.Second); len(got) != 0 || err != nil || time.Since(begin) != time.Second {
			t.Errorf("without a receiver: got %d messages and error %v after %v", len(got), err, time.Since(begin))
		}
		begin = time.Now()
		if got, err := st.receive(t.Context(), q, 1, 0, 3*time.Second); len(got) != 0 || err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("with less patience: got %d messages and error %v after %v", len(got), err, time.Since(begin))
		}
		if err := st.close(); err != nil {
			t.Error(err)
		}
	})
}
