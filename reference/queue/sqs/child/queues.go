package child

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// limits are the numeric attributes of a queue: the default, the least and the largest value
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html, read November 2026).
func limits() map[string][3]int {
	return map[string][3]int{
		"DelaySeconds":                  {0, 0, 900},
		"MaximumMessageSize":            {maxMessage, 1024, maxMessage},
		"MessageRetentionPeriod":        {345_600, 60, 1_209_600},
		"ReceiveMessageWaitTimeSeconds": {0, 0, 20},
		"VisibilityTimeout":             {30, 0, 43_200},
	}
}

// choices are the attributes of FIFO queues that are words.
func choices() map[string][]string {
	return map[string][]string{
		"FifoQueue":                 {"true"},
		"ContentBasedDeduplication": {"false", "true"},
		"DeduplicationScope":        {"queue", "messageGroup"},
		"FifoThroughputLimit":       {"perQueue", "perMessageGroupId"},
	}
}

// queueName is what a queue may be called, without the .fifo.
var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// find is the queue of a URL.
func (s *server) find(queueURL string) (*queue, error) {
	u, err := url.Parse(queueURL)
	if err != nil {
		return nil, &failure{code: "InvalidAddress", message: "the queue URL is none", status: http.StatusBadRequest}
	}
	return s.named(path.Base(u.Path))
}

func (s *server) named(name string) (*queue, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if q := s.store.queues[name]; q != nil {
		return q, nil
	}
	return nil, &failure{code: "QueueDoesNotExist", query: "AWS.SimpleQueueService.NonExistentQueue", message: "there is no queue " + strconv.Quote(name), status: http.StatusBadRequest}
}

func (s *server) url(name string) string { return "http://" + s.host + "/" + account + "/" + name }

// checkSettings says what is wrong with attributes of a queue.
func checkSettings(settings map[string]string, fifo bool) error {
	for name, value := range settings {
		if limit, ok := limits()[name]; ok {
			if n, err := strconv.Atoi(value); err != nil || n < limit[1] || n > limit[2] {
				return &failure{code: "InvalidAttributeValue", message: fmt.Sprintf("%s is %q: use %d to %d", name, value, limit[1], limit[2]), status: http.StatusBadRequest}
			}
			continue
		}
		words, ok := choices()[name]
		if !ok || !fifo {
			return &failure{code: "InvalidAttributeName", message: fmt.Sprintf("this emulator has no attribute %s for this kind of queue", name), status: http.StatusBadRequest}
		}
		if !slices.Contains(words, value) {
			return &failure{code: "InvalidAttributeValue", message: fmt.Sprintf("%s is %q: use %s", name, value, strings.Join(words, " or ")), status: http.StatusBadRequest}
		}
	}
	return nil
}

func (s *server) createQueue(_ context.Context, in *queueInput) (any, error) {
	base, fifo := strings.CutSuffix(in.QueueName, ".fifo")
	if !queueName.MatchString(base) || len(in.QueueName) > 80 || fifo != (in.Attributes["FifoQueue"] == "true") {
		return nil, invalid("queue %q: use 1 to 80 letters, digits, - and _; a FIFO queue, and no other, ends in .fifo and has the attribute FifoQueue", in.QueueName)
	}
	if err := checkSettings(in.Attributes, fifo); err != nil {
		return nil, err
	}
	settings := maps.Clone(in.Attributes)
	if settings == nil {
		settings = make(map[string]string)
	}
	var failed error
	s.store.do(func(st *store) []record {
		if q := st.queues[in.QueueName]; q != nil {
			for name, value := range settings {
				if q.attribute(name) != value {
					failed = &failure{code: "QueueNameExists", query: "QueueAlreadyExists", message: fmt.Sprintf("the queue is there and has another %s", name), status: http.StatusBadRequest}
				}
			}
			return nil
		}
		st.last++
		return []record{{op: opQueue, queue: st.last, at: st.now().UnixMicro(), name: in.QueueName, settings: settings}}
	})
	if failed != nil {
		return nil, failed
	}
	return &queueOutput{QueueUrl: s.url(in.QueueName)}, nil
}

// attribute is a setting, or its default.
func (q *queue) attribute(name string) string {
	if v, ok := q.settings[name]; ok {
		return v
	}
	if limit, ok := limits()[name]; ok {
		return strconv.Itoa(limit[0])
	}
	if q.line.fifo && name != "FifoQueue" && len(choices()[name]) > 0 {
		return choices()[name][0]
	}
	return ""
}

func (s *server) getQueueURL(_ context.Context, in *queueInput) (any, error) {
	q, err := s.named(in.QueueName)
	if err != nil {
		return nil, err
	}
	return &queueOutput{QueueUrl: s.url(q.name)}, nil
}

func (s *server) listQueues(_ context.Context, in *listInput) (any, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	var out queueOutput
	for _, name := range slices.Sorted(maps.Keys(s.store.queues)) {
		if strings.HasPrefix(name, in.QueueNamePrefix) {
			out.QueueUrls = append(out.QueueUrls, s.url(name))
		}
	}
	return &out, nil
}

func (s *server) getQueueAttributes(_ context.Context, in *queueInput) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	all := s.attributes(q)
	if slices.Contains(in.AttributeNames, "All") {
		return &queueOutput{Attributes: all}, nil
	}
	out := queueOutput{Attributes: make(map[string]string)}
	for _, name := range in.AttributeNames {
		value, ok := all[name]
		if !ok {
			return nil, &failure{code: "InvalidAttributeName", message: "there is no attribute " + name, status: http.StatusBadRequest}
		}
		out.Attributes[name] = value
	}
	return &out, nil
}

// attributes is all that there is to know about a queue.
func (s *server) attributes(q *queue) map[string]string {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	q.line.expire(s.store.now().UnixMicro())
	delayed := 0
	for _, m := range q.line.hidden {
		if m.token == 0 {
			delayed++
		}
	}
	all := map[string]string{
		"ApproximateNumberOfMessages":           strconv.Itoa(q.line.visible()),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(len(q.line.hidden) - delayed),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(delayed),
		"CreatedTimestamp":                      strconv.FormatInt(q.made/1e6, 10),
		"LastModifiedTimestamp":                 strconv.FormatInt(q.changed/1e6, 10),
		"QueueArn":                              "arn:aws:sqs:local:" + account + ":" + q.name,
		Emulator:                                Version(),
		Storage:                                 s.storage,
	}
	for name := range limits() {
		all[name] = q.attribute(name)
	}
	if q.line.fifo {
		for name := range choices() {
			all[name] = q.attribute(name)
		}
	}
	return all
}

func (s *server) setQueueAttributes(_ context.Context, in *queueInput) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if err := checkSettings(in.Attributes, q.line.fifo); err != nil {
		return nil, err
	}
	s.store.do(func(st *store) []record {
		settings := maps.Clone(q.settings)
		maps.Copy(settings, in.Attributes)
		return []record{{op: opQueue, queue: q.number, at: st.now().UnixMicro(), name: q.name, settings: settings}}
	})
	return nil, nil
}

func (s *server) deleteQueue(_ context.Context, in *queueInput) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	s.store.do(func(*store) []record { return []record{{op: opGone, queue: q.number}} })
	return nil, nil
}

func (s *server) purgeQueue(_ context.Context, in *queueInput) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	s.store.do(func(st *store) []record { return []record{{op: opPurge, queue: q.number, number: st.last}} })
	return nil, nil
}
