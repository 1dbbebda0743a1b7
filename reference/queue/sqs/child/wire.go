package child

// The shapes of the protocol, by the names of https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/ (read November 2026). A pointer tells "not given"
// from 0. What is missing here is refused where leaving it out would change what a caller gets.

type queueInput struct {
	QueueName, QueueUrl string
	Attributes          map[string]string
	AttributeNames      []string
}

type queueOutput struct {
	QueueUrl   string            `json:",omitempty"`
	Attributes map[string]string `json:",omitempty"`
	QueueUrls  []string          `json:",omitempty"`
}

type listInput struct{ QueueNamePrefix string }

type attributeValue struct {
	DataType    string
	StringValue string `json:",omitempty"`
	BinaryValue []byte `json:",omitempty"`
}

// sendEntry is one message to send; QueueUrl is that of SendMessage, Id that of SendMessageBatch.
type sendEntry struct {
	QueueUrl, Id                           string
	MessageBody                            string
	DelaySeconds                           *int
	MessageAttributes                      map[string]attributeValue
	MessageSystemAttributes                map[string]attributeValue
	MessageGroupId, MessageDeduplicationId string
}

type sendBatchInput struct {
	QueueUrl string
	Entries  []sendEntry
}

type sendResult struct {
	Id                     string `json:",omitempty"`
	MessageId              string
	MD5OfMessageBody       string
	MD5OfMessageAttributes string `json:",omitempty"`
	SequenceNumber         string `json:",omitempty"`
}

type failedEntry struct {
	Id, Code, Message string
	SenderFault       bool
}

// batchOutput is the answer to all batches; Successful are sendResults, or ids.
type batchOutput[T any] struct {
	Successful []T
	Failed     []failedEntry
}

type idResult struct{ Id string }

type receiveInput struct {
	QueueUrl                                           string
	MaxNumberOfMessages                                *int
	VisibilityTimeout, WaitTimeSeconds                 *int
	AttributeNames                                     []string
	MessageSystemAttributeNames, MessageAttributeNames []string
	ReceiveRequestAttemptId                            string
}

type receiveOutput struct {
	Messages []receivedMessage `json:",omitempty"`
}

type receivedMessage struct {
	MessageId, ReceiptHandle, MD5OfBody, Body string
	Attributes                                map[string]string         `json:",omitempty"`
	MessageAttributes                         map[string]attributeValue `json:",omitempty"`
	MD5OfMessageAttributes                    string                    `json:",omitempty"`
}

// handleEntry is one receipt handle to do something with; QueueUrl is that of the single actions, Id that of the batches.
type handleEntry struct {
	QueueUrl, Id, ReceiptHandle string
	VisibilityTimeout           *int
}

type handleBatchInput struct {
	QueueUrl string
	Entries  []handleEntry
}
