package sqs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"

	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/sqlite"
)

// The defaults of Options.
const (
	DefaultNamespace  = "floodproof"
	DefaultVisibility = 10 * time.Second
)

// Options are how a transport, or a queue on one, is opened.
type Options struct {
	// Endpoint is the service's URL: that of Amazon for a region ("https://sqs.eu-central-1.amazonaws.com"), or that of another server.
	Endpoint string
	// Region is Amazon's; "" is the one in the endpoint's name, or else AWS_REGION, or else "us-east-1", which other servers do not look at.
	Region string
	// Namespace is the name of the queue, without .fifo: up to 75 letters, digits, - and _; "" is DefaultNamespace.
	Namespace string
	// FIFO takes a FIFO queue instead of a standard one. Groups is how many groups its messages are spread over, up to 256: one keeps the order of all, and
	// is received by one at a time; 0 is 1.
	FIFO   bool
	Groups int
	// Visibility is how long a fetched message belongs to its fetcher, in whole seconds; longer than a batch takes to be stored. 0 is DefaultVisibility.
	Visibility time.Duration
	// Credentials replace those that the SDK finds by itself (environment, files, role of the machine). A server that is not Amazon's gets invented ones, unless the
	// environment has some.
	Credentials aws.CredentialsProvider
	// Dir is the directory of the store, for Open; all processes of a queue share it. Lease is how long a received job belongs to its receiver; 0 is the store's default.
	Dir   string
	Lease time.Duration
	// Retention is how long the store keeps a finished event, with its payload and its history; it is then known no more, so that it must be longer than a message may stay in SQS, which is 14 days.
	// 0 keeps all for ever; any other is sqlite.MinRetention or more.
	Retention time.Duration
}

var (
	nameRule   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,75}$`)
	amazonRule = regexp.MustCompile(`^sqs(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$`)
)

func (o Options) withDefaults() (Options, error) {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Visibility = cmp.Or(o.Visibility, DefaultVisibility)
	o.Groups = cmp.Or(o.Groups, 1)
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return o, errors.New("the endpoint is no URL: use one like https://sqs.eu-central-1.amazonaws.com or http://127.0.0.1:9324")
	case !nameRule.MatchString(o.Namespace):
		return o, fmt.Errorf("namespace is %q: use up to 75 letters, digits, - and _", o.Namespace)
	case o.Visibility < time.Second || o.Visibility > 12*time.Hour || o.Visibility%time.Second != 0:
		return o, fmt.Errorf("visibility is %v: use whole seconds, up to 12 hours", o.Visibility)
	case o.Groups < 1 || o.Groups > 256:
		return o, fmt.Errorf("%d groups: use 1 to 256", o.Groups)
	}
	if o.Region == "" {
		o.Region = cmp.Or(o.amazon(), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
	}
	return o, nil
}

// amazon is the region in the endpoint's name if that is Amazon's own, over TLS, and "" otherwise.
func (o Options) amazon() string {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	if found := amazonRule.FindStringSubmatch(u.Hostname()); found != nil {
		return found[1]
	}
	return ""
}

func (o Options) queueName() string {
	if o.FIFO {
		return o.Namespace + ".fifo"
	}
	return o.Namespace
}

// Open makes a queue of a transport on SQS and a store in SQLite. The context bounds the opening alone.
func Open(ctx context.Context, opts Options) (*inbox.Queue, error) {
	if opts.Dir == "" {
		return nil, errors.New("open the queue: the directory of the store is missing")
	}
	t, err := Connect(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	store, err := sqlite.Open(ctx, opts.Dir, sqlite.Options{Lease: opts.Lease, Retention: opts.Retention})
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	q, err := inbox.Open(ctx, inbox.Options{Transport: t, Store: store})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the queue on %s: %w", opts.Endpoint, err), t.Close(ctx), store.Close(ctx))
	}
	return q, nil
}

// Connect finds the queue of the namespace, or makes it. The context bounds the opening alone.
func Connect(ctx context.Context, opts Options) (*Transport, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("connect to SQS: %w", err)
	}
	t := &Transport{opts: opts, wire: newWire()}
	if t.client, err = newClient(ctx, opts, t.wire); err == nil {
		err = t.prepare(ctx)
	}
	if err != nil {
		t.wire.CloseIdleConnections()
		return nil, fmt.Errorf("connect to SQS at %s: %w", opts.Endpoint, err)
	}
	t.closing, t.close = context.WithCancel(context.Background())
	return t, nil
}

// newWire has room for all requests that are under way at once.
func newWire() *http.Transport {
	wire := awshttp.NewBuildableClient().GetTransport()
	wire.MaxIdleConnsPerHost = 64
	return wire
}

func newClient(ctx context.Context, opts Options, wire http.RoundTripper) (*sqs.Client, error) {
	load := []func(*config.LoadOptions) error{config.WithRegion(opts.Region)}
	switch {
	case opts.Credentials != nil:
		load = append(load, config.WithCredentialsProvider(opts.Credentials))
	case opts.amazon() == "" && os.Getenv("AWS_ACCESS_KEY_ID") == "":
		load = append(load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("local", "local", "")))
	}
	loaded, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("find the configuration of AWS: %w", err)
	}
	return sqs.NewFromConfig(loaded, func(o *sqs.Options) {
		o.BaseEndpoint = aws.String(strings.TrimSuffix(opts.Endpoint, "/"))
		o.HTTPClient = &http.Client{Transport: whole{wire}}
		o.Logger = logging.Nop{} // it warns of connections that end; the errors are returned besides
	}), nil
}

// whole sends request bodies that nobody closes meanwhile. The SDK closes its own as soon as there is an answer, whether or not net/http is through with it. On a busy machine, with an answer
// that came within a millisecond, the client's connection was then now and then closed under the answer ("use of closed network connection", service/sqs v1.53.0, Go 1.26), which
// was lost with it: the SDK asks again, and the messages in it stay hidden until their visibility timeout ends. With bodies of our own that was not seen again.
type whole struct{ wire http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w whole) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return w.wire.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err := errors.Join(err, req.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	own := req.Clone(req.Context())
	own.Body, own.GetBody, own.ContentLength = io.NopCloser(bytes.NewReader(body)), nil, int64(len(body))
	return w.wire.RoundTrip(own)
}
