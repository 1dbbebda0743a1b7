package child

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

const (
	// contentType is that of the AWS JSON protocol 1.0 (https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html, read November 2026).
	contentType = "application/x-amz-json-1.0"
	// targetPrefix begins the header that names the action.
	targetPrefix = "AmazonSQS."
	// maxRequest bounds a request in bytes: a batch of a megabyte, of which JSON may make six.
	maxRequest = 8 << 20
	// account is the account in queue URLs: nobody's.
	account = "000000000000"
)

// Emulator and Storage are attributes that GetQueueAttributes tells of every queue besides those of Amazon: which emulator this is, and how it keeps messages.
const (
	Emulator = "FloodproofEmulator"
	Storage  = "FloodproofStorage"
)

// The values of Storage: what an answered SendMessage survives.
const (
	StorageSync   = "sync"   // a loss of power
	StorageNosync = "nosync" // SIGKILL of the server
	StorageMemory = "memory" // the same: the directory is in memory
)

// server answers requests. It checks no signature: it listens on the loopback alone, and a browser cannot send the header that names the action without asking first.
type server struct {
	store   *store
	storage string
	host    string // in queue URLs
}

// action answers one decoded request.
type action func(ctx context.Context, body []byte) (any, error)

// decoded makes an action of a function with a typed input.
func decoded[In any](do func(context.Context, *In) (any, error)) action {
	return func(ctx context.Context, body []byte) (any, error) {
		var in In
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, &failure{code: "SerializationException", message: err.Error(), status: http.StatusBadRequest}
		}
		return do(ctx, &in)
	}
}

func (s *server) action(name string) action {
	switch name {
	case "CreateQueue":
		return decoded(s.createQueue)
	case "GetQueueUrl":
		return decoded(s.getQueueURL)
	case "ListQueues":
		return decoded(s.listQueues)
	case "GetQueueAttributes":
		return decoded(s.getQueueAttributes)
	case "SetQueueAttributes":
		return decoded(s.setQueueAttributes)
	case "DeleteQueue":
		return decoded(s.deleteQueue)
	case "PurgeQueue":
		return decoded(s.purgeQueue)
	case "SendMessage":
		return decoded(s.sendMessage)
	case "SendMessageBatch":
		return decoded(s.sendMessageBatch)
	case "ReceiveMessage":
		return decoded(s.receiveMessage)
	case "DeleteMessage":
		return decoded(s.deleteMessage)
	case "DeleteMessageBatch":
		return decoded(s.deleteMessageBatch)
	case "ChangeMessageVisibility":
		return decoded(s.changeVisibility)
	case "ChangeMessageVisibilityBatch":
		return decoded(s.changeVisibilityBatch)
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", Version())
	w.Header().Set("X-Amzn-RequestId", newID())
	name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), targetPrefix)
	do := s.action(name)
	if r.Method != http.MethodPost || !ok || do == nil {
		answer(w, nil, &failure{code: "UnsupportedOperation", query: "AWS.SimpleQueueService.UnsupportedOperation",
			message: "this emulator answers POST with an X-Amz-Target of AmazonSQS and one of its actions, not " + r.Header.Get("X-Amz-Target"), status: http.StatusBadRequest})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		answer(w, nil, invalid("the request cannot be read: %v", err))
		return
	}
	result, err := do(r.Context(), body)
	answer(w, result, err)
}

// answer writes a result or an error as the protocol has them.
func answer(w http.ResponseWriter, result any, err error) {
	w.Header().Set("Content-Type", contentType)
	status := http.StatusOK
	if err != nil {
		f := &failure{code: "InternalFailure", message: err.Error(), status: http.StatusInternalServerError}
		_ = errors.As(err, &f)
		query := f.query
		if query == "" {
			query = f.code
		}
		fault := ";Sender"
		if f.status >= http.StatusInternalServerError {
			fault = ";Receiver"
		}
		w.Header().Set("X-Amzn-Query-Error", query+fault)
		status, result = f.status, map[string]string{"__type": "com.amazonaws.sqs#" + f.code, "message": f.message}
	}
	if result == nil {
		result = struct{}{}
	}
	text, err := json.Marshal(result)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"__type":"com.amazonaws.sqs#InternalFailure"}`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(text) // whoever has left hears nothing
}
