package child

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestMessage sends everything that a message can have and gets it back.
func TestMessage(t *testing.T) {
	e := start(t)
	q := e.create("messages", nil)
	attributes := map[string]types.MessageAttributeValue{
		"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 0xff}},
		"text":  {DataType: aws.String("String"), StringValue: aws.String("Grüße")},
		"price": {DataType: aws.String("Number.euro"), StringValue: aws.String("12.50")},
	}
	sent, err := e.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("body \"<\u2028>\""), MessageAttributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	got := e.want(q, "body \"<\u2028>\"")[0]
	if diff := cmp.Diff(attributes, got.MessageAttributes, cmpopts.IgnoreUnexported(types.MessageAttributeValue{})); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if *got.MessageId != *sent.MessageId || *got.MD5OfMessageAttributes != *sent.MD5OfMessageAttributes {
		t.Errorf("got message %s with attributes %s, want %s, %s", *got.MessageId, *got.MD5OfMessageAttributes, *sent.MessageId, *sent.MD5OfMessageAttributes)
	}
	want := map[string]string{"ApproximateReceiveCount": "1", "SenderId": account, "SentTimestamp": "1790000000000", "ApproximateFirstReceiveTimestamp": "1790000000000"}
	if diff := cmp.Diff(want, got.Attributes); diff != "" {
		t.Errorf("system attributes (-want +got):\n%s", diff)
	}
	if err := e.remove(q, got); err != nil {
		t.Fatal(err)
	}
	e.clock.pass(time.Hour)
	e.want(q)
}

// TestSumAttributes compares with the digest that Amazon's documentation of the algorithm implies for one attribute, computed by hand:
// md5(00000003 "one" 00000006 "String" 01 00000001 "1").
func TestSumAttributes(t *testing.T) {
	want := sum("\x00\x00\x00\x03one\x00\x00\x00\x06String\x01\x00\x00\x00\x011")
	if got := sumAttributes([]attribute{{name: "one", kind: "String", value: "1"}}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := sumAttributes(nil); got != "" {
		t.Errorf("of none: got %q", got)
	}
}

// TestVisibility: a received message is hidden until its timeout ends; then only the handle of whoever received it next counts.
func TestVisibility(t *testing.T) {
	e := start(t)
	q := e.create("visibility", map[string]string{"VisibilityTimeout": "60"})
	e.send(q, "a", "b")
	first := e.want(q, "a", "b")
	e.clock.pass(59 * time.Second)
	e.want(q)
	if err := e.remove(q, first[1]); err != nil {
		t.Fatal(err)
	}
	e.clock.pass(time.Second)
	second := e.want(q, "a")[0]
	if got := second.Attributes["ApproximateReceiveCount"]; got != "2" {
		t.Errorf("receive count: got %s, want 2", got)
	}
	if err := e.remove(q, first[0]); err != nil { // as with Amazon: no error, no effect
		t.Errorf("delete by an old handle: %v", err)
	}
	e.clock.pass(time.Minute)
	third := e.want(q, "a")[0]
	e.clock.pass(time.Minute)
	if err := e.remove(q, third); err != nil { // lapsed, but nobody else has it
		t.Fatal(err)
	}
	e.want(q)
	if got := e.attribute(q, "ApproximateNumberOfMessages"); got != "0" {
		t.Errorf("messages: got %s, want 0", got)
	}
}

func TestChangeVisibility(t *testing.T) {
	e := start(t)
	q := e.create("change", nil)
	e.send(q, "a")
	m := e.want(q, "a")[0]
	change := func(seconds int32) error {
		_, err := e.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &q, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds})
		return err
	}
	if err := change(300); err != nil {
		t.Fatal(err)
	}
	e.clock.pass(299 * time.Second)
	e.want(q)
	if got := e.attribute(q, "ApproximateNumberOfMessagesNotVisible"); got != "1" {
		t.Errorf("hidden messages: got %s, want 1", got)
	}
	if err := change(0); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a change after that", change(10), "MessageNotInflight")
	m = e.want(q, "a")[0]
	wantCode(t, "more than 12 hours", change(43_201), "InvalidParameterValue")
}

func TestDelay(t *testing.T) {
	e := start(t)
	q := e.create("delay", map[string]string{"DelaySeconds": "10"})
	e.send(q, "by the queue")
	if _, err := e.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("by the sender"), DelaySeconds: 900}); err != nil {
		t.Fatal(err)
	}
	if got := e.attribute(q, "ApproximateNumberOfMessagesDelayed"); got != "2" {
		t.Errorf("delayed: got %s, want 2", got)
	}
	e.want(q)
	e.clock.pass(10 * time.Second)
	e.want(q, "by the queue")
	e.reopen() // delays survive, visibility does not
	q = e.create("delay", nil)
	e.want(q, "by the queue")
	e.clock.pass(890 * time.Second)
	e.want(q, "by the queue", "by the sender")
}

// TestFIFO: messages of a group come in order, and none while one of them is out, whatever other groups do.
func TestFIFO(t *testing.T) {
	e := start(t)
	q := e.create("line.fifo", fifo())
	for i := range 3 {
		e.ordered(q, "a", fmt.Sprint("a", i))
		e.ordered(q, "b", fmt.Sprint("b", i))
	}
	first := e.receive(q, 1)
	if *first[0].Body != "a0" || first[0].Attributes["MessageGroupId"] != "a" {
		t.Fatalf("first: got %s of %s", *first[0].Body, first[0].Attributes["MessageGroupId"])
	}
	of := e.want(q, "b0", "b1", "b2")
	if err := e.remove(q, of[0]); err != nil {
		t.Fatal(err)
	}
	e.want(q) // both groups are held up
	if err := e.remove(q, first[0]); err != nil {
		t.Fatal(err)
	}
	a := e.want(q, "a1", "a2")
	if a[0].Attributes["SequenceNumber"] >= a[1].Attributes["SequenceNumber"] || len(a[0].Attributes["SequenceNumber"]) != 20 {
		t.Errorf("sequence numbers: got %s and %s", a[0].Attributes["SequenceNumber"], a[1].Attributes["SequenceNumber"])
	}
	e.clock.pass(30 * time.Second)
	e.want(q, "a1", "a2", "b1", "b2")
	wantCode(t, "delete by a handle that has expired", e.remove(q, a[0]), "InvalidParameterValue")
	e.ordered(q, "b", "b3")
	e.clock.pass(30 * time.Second)
	e.want(q, "a1", "a2", "b1", "b2", "b3")
}

// TestDeduplication: a message is known for five minutes, also after it was deleted, and after a restart; and then no more.
func TestDeduplication(t *testing.T) {
	e := start(t)
	q := e.create("known.fifo", fifo())
	id := e.ordered(q, "a", "same")
	if again := e.ordered(q, "b", "same"); again != id {
		t.Errorf("the same deduplication id: got message %s, want %s", again, id)
	}
	if err := e.remove(q, e.want(q, "same")[0]); err != nil {
		t.Fatal(err)
	}
	e.clock.pass(2 * time.Minute)
	e.reopen()
	q = e.create("known.fifo", fifo())
	if again := e.ordered(q, "a", "same"); again != id {
		t.Errorf("after a restart: got message %s, want %s", again, id)
	}
	e.want(q)
	e.clock.pass(3 * time.Minute)
	if again := e.ordered(q, "a", "same"); again == id {
		t.Error("after five minutes: still known")
	}
	e.want(q, "same")
	batch := &sqs.SendMessageBatchInput{QueueUrl: &q}
	for i := range 3 {
		batch.Entries = append(batch.Entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String("twin"), MessageGroupId: aws.String("c"), MessageDeduplicationId: aws.String("twin"),
		})
	}
	if _, err := e.SendMessageBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	e.want(q, "twin")

	scoped := e.create("scoped.fifo", map[string]string{"FifoQueue": "true", "DeduplicationScope": "messageGroup"})
	if e.ordered(scoped, "a", "same") == e.ordered(scoped, "b", "same") {
		t.Error("a deduplication id of another group is known, with the scope messageGroup")
	}
}

// TestBatches: what is wrong with a batch fails all of it, what is wrong with an entry fails that.
func TestBatches(t *testing.T) {
	e := start(t)
	q := e.create("batches", map[string]string{"MaximumMessageSize": "2000"})
	big := e.create("big", nil)
	entry := func(id, body string) types.SendMessageBatchRequestEntry {
		return types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body}
	}
	var eleven []types.SendMessageBatchRequestEntry
	for i := range 11 {
		eleven = append(eleven, entry(fmt.Sprint(i), "x"))
	}
	for _, tt := range []struct {
		queue   string
		entries []types.SendMessageBatchRequestEntry
		want    string
	}{
		{q, []types.SendMessageBatchRequestEntry{}, "EmptyBatchRequest"},
		{q, eleven, "TooManyEntriesInBatchRequest"},
		{q, []types.SendMessageBatchRequestEntry{entry("a", "x"), entry("a", "y")}, "BatchEntryIdsNotDistinct"},
		{q, []types.SendMessageBatchRequestEntry{entry("a b", "x")}, "InvalidBatchEntryId"},
		{big, []types.SendMessageBatchRequestEntry{entry("a", strings.Repeat("x", 600_000)), entry("b", strings.Repeat("y", 600_000))}, "BatchRequestTooLong"},
		{strings.Replace(q, "batches", "nowhere", 1), eleven[:1], "NonExistentQueue"},
	} {
		_, err := e.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &tt.queue, Entries: tt.entries})
		wantCode(t, fmt.Sprintf("%d entries", len(tt.entries)), err, tt.want)
	}
	out, err := e.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &q, Entries: []types.SendMessageBatchRequestEntry{
		entry("good", "fits"), entry("long", strings.Repeat("x", 2001)), entry("odd", "a\x01b"), entry("longest", strings.Repeat("x", 2000)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, f := range out.Failed {
		got[*f.Id] = *f.Code
	}
	if diff := cmp.Diff(map[string]string{"long": "InvalidParameterValue", "odd": "InvalidMessageContents"}, got); diff != "" || len(out.Successful) != 2 {
		t.Errorf("failed entries (-want +got), and %d successful:\n%s", len(out.Successful), diff)
	}
	received := e.want(q, "fits", strings.Repeat("x", 2000))
	deleted, err := e.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &q, Entries: []types.DeleteMessageBatchRequestEntry{
		{Id: aws.String("0"), ReceiptHandle: received[0].ReceiptHandle}, {Id: aws.String("1"), ReceiptHandle: aws.String("nonsense")}, {Id: aws.String("2"), ReceiptHandle: received[1].ReceiptHandle},
	}})
	if err != nil || len(deleted.Successful) != 2 || len(deleted.Failed) != 1 || *deleted.Failed[0].Code != "ReceiptHandleIsInvalid" {
		t.Errorf("DeleteMessageBatch: got %+v, %v", deleted, err)
	}
	e.clock.pass(time.Hour)
	e.want(q)
}

// TestQueues: a queue is made once, and another of its name is not it.
func TestQueues(t *testing.T) {
	e := start(t)
	q := e.create("one", map[string]string{"VisibilityTimeout": "7"})
	if again := e.create("one", map[string]string{"VisibilityTimeout": "7", "DelaySeconds": "0"}); again != q {
		t.Errorf("made again: got %s, want %s", again, q)
	}
	for name, attributes := range map[string]map[string]string{
		"one": {"VisibilityTimeout": "8"}, "two": {"VisibilityTimeout": "-1"}, "three": {"RedrivePolicy": "{}"}, "four.fifo": nil, "five": {"FifoQueue": "true"}, "s i x": nil,
		"seven": {"DeduplicationScope": "queue"}, "eight.fifo": {"FifoQueue": "true", "DeduplicationScope": "everything"},
	} {
		if _, err := e.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}); err == nil {
			t.Errorf("CreateQueue %s with %v: got no error", name, attributes)
		}
	}
	if _, err := e.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: map[string]string{"VisibilityTimeout": "9"}}); err != nil {
		t.Fatal(err)
	}
	e.send(q, "lost with the purge")
	if _, err := e.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &q}); err != nil {
		t.Fatal(err)
	}
	e.send(q, "kept")
	other := e.create("other", nil)
	e.send(other, "gone with its queue")
	if _, err := e.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &other}); err != nil {
		t.Fatal(err)
	}
	e.reopen()
	found, err := e.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("one")})
	if err != nil {
		t.Fatal(err)
	}
	q = *found.QueueUrl
	e.want(q, "kept")
	if got := e.attribute(q, "VisibilityTimeout"); got != "9" {
		t.Errorf("VisibilityTimeout: got %s, want 9", got)
	}
	_, err = e.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("other")})
	if missing := new(types.QueueDoesNotExist); !errors.As(err, &missing) {
		t.Errorf("GetQueueUrl of a deleted queue: got error %v, want %T", err, missing)
	}
	wantCode(t, "GetQueueUrl of a deleted queue", err, "NonExistentQueue")
	listed, err := e.ListQueues(t.Context(), &sqs.ListQueuesInput{})
	if err != nil || len(listed.QueueUrls) != 1 {
		t.Errorf("ListQueues: got %+v, %v", listed, err)
	}
	if got := e.attribute(q, Emulator); got != Version() {
		t.Errorf("%s: got %q, want %q", Emulator, got, Version())
	}
	_, err = e.ListQueueTags(t.Context(), &sqs.ListQueueTagsInput{QueueUrl: &q})
	wantCode(t, "an action that is not emulated", err, "UnsupportedOperation")
}
