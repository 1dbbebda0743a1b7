package reference

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"floodproof/reference/crashpoint"
	"floodproof/reference/queue"
)

// The defaults of a ReceiverConfig.
const (
	DefaultMaxBody        = 1 << 20
	DefaultMaxWaiting     = 1024
	DefaultEnqueueTimeout = 4 * time.Second
	// DefaultTolerance is what Stripe's libraries (https://docs.stripe.com/webhooks) and HubSpot's documentation
	// (https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests) use; both read in November 2026.
	DefaultTolerance = 300 * time.Second
)

// ReceiverConfig is what a Receiver needs. Queue and Providers must be set; every other field has a working zero value.
type ReceiverConfig struct {
	// Queue takes the events. The receiver answers success only after its Enqueue returned nil.
	Queue queue.Queue
	// Providers are those that are listened to, by name (see Providers). Any other name is answered 404.
	Providers map[string]ProviderConfig
	// Lanes say in which lane an event waits; the first rule that fits decides, and what fits none waits in the default lane, "".
	Lanes []LaneRule
	// Debounce says which events are updates of which only the newest is worked on; the first rule that fits decides. The queue must claim that it can.
	Debounce []DebounceRule
	// PublicURL is the base under which providers address this receiver, such as "https://hooks.example.com": scheme and host, and the path
	// prefix that a proxy takes away, if any. HubSpot signs it. "": scheme and host of each request as it arrives, which is right without a proxy.
	PublicURL string
	// Tolerance is the greatest age of a signature with a time stamp. 0: DefaultTolerance.
	Tolerance time.Duration
	// FutureTolerance is how far such a time stamp may lie ahead of this machine's clock. 0: DefaultTolerance.
	// Only who knows the secret can date ahead; the bound keeps a stray delivery from staying good for years.
	FutureTolerance time.Duration
	// MaxWaiting is the most requests that may be inside Enqueue at once; one more is answered 503. 0: DefaultMaxWaiting.
	// Requests that are still sending their body, or whose signature is wrong, do not count, so nobody without a secret can fill it.
	MaxWaiting int
	// EnqueueTimeout bounds one Enqueue. 0: DefaultEnqueueTimeout, which leaves a second of the five that Shopify waits
	// (https://shopify.dev/docs/apps/build/webhooks/subscribe/https, read November 2026).
	EnqueueTimeout time.Duration
	// Senders bounds how often one sender may come. The zero value: as often as it likes.
	Senders SenderLimit
	// Logger hears of refusals (debug) and of a queue that fails (warn). It never gets a secret, a signature or a body. Nil: nothing is logged.
	Logger *slog.Logger
	// Crash is told of the points of a receiver. Nil, as in use: nothing.
	Crash crashpoint.Hook
	// Now is the clock that signatures are checked against and jobs are stamped with. Nil: time.Now.
	Now func() time.Time
}

// ProviderConfig is what a Receiver needs to know about one provider.
type ProviderConfig struct {
	// Secrets are the active signing secrets; a signature under any of them is genuine, so that a secret can be
	// replaced without a gap. At least one, and none empty: unsigned requests are accepted only where Custom says so.
	Secrets []Secret
	// MaxBody is the largest body in bytes; a larger one is answered 413. 0: DefaultMaxBody. GitHub sends up to 25 MB
	// (https://docs.github.com/webhooks/webhook-events-and-payloads, read November 2026): raise it, and the queue's own limit, if your events are that large.
	MaxBody int64
	// Custom describes the provider if it is none of [Providers]; nil otherwise. One that does not sign needs no secret.
	Custom *CustomScheme
}

// Receiver is the first stage: an http.Handler that verifies a delivery, splits it into events, stores them in one durable write and
// only then answers 200. It does nothing else. It is safe for concurrent use and starts no goroutine.
//
//	POST /webhooks/{provider}   a delivery
//	GET  /healthz               200 while the process can answer
//	GET  /readyz                200 while the queue answers and there is room to wait for it
//
// Every answer is one line of JSON: {"status":"queued"} or {"error":"..."}.
type Receiver struct {
	mux       http.ServeMux
	endpoints map[string]*endpoint
	queue     queue.Queue
	probe     *probe
	waiting   chan struct{}
	cfg       ReceiverConfig
	window    window
	senders   *senders
}

// endpoint is one provider, ready to receive.
type endpoint struct {
	name    string
	hook    hook
	maxBody int64
}

// NewReceiver checks the configuration and builds the handler. All that is wrong is reported at once.
func NewReceiver(cfg ReceiverConfig) (*Receiver, error) {
	cfg, err := cfg.complete()
	endpoints, faults := newEndpoints(cfg.Providers)
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("configure receiver: %w", err)
	}
	rc := &Receiver{
		endpoints: endpoints,
		queue:     cfg.Queue,
		waiting:   make(chan struct{}, cfg.MaxWaiting),
		window:    window{past: cfg.Tolerance, future: cfg.FutureTolerance},
		cfg:       cfg,
	}
	rc.probe = newProbe(cfg.Queue)
	rc.senders = newSenders(cfg.Senders)
	rc.cfg.Providers = nil // The secrets live in the keyrings from here on.
	rc.mux.HandleFunc("/webhooks/{provider}", rc.serveWebhook)
	rc.mux.HandleFunc("/healthz", rc.serveHealth)
	rc.mux.HandleFunc("/readyz", rc.serveReady)
	rc.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { rc.refuse(w, r, errPath) })
	return rc, nil
}

// complete fills in the defaults.
func (cfg ReceiverConfig) complete() (ReceiverConfig, error) {
	var faults []error
	if cfg.Queue == nil {
		faults = append(faults, errors.New("set Queue: there is nowhere to put events"))
	}
	if cfg.Tolerance < 0 || cfg.FutureTolerance < 0 || cfg.MaxWaiting < 0 || cfg.EnqueueTimeout < 0 {
		faults = append(faults, errors.New("tolerances, MaxWaiting and EnqueueTimeout must not be negative; leave them 0 for the default"))
	}
	if err := cfg.Senders.check(); err != nil {
		faults = append(faults, err)
	}
	for i, rule := range cfg.Lanes {
		if err := rule.check(); err != nil {
			faults = append(faults, fmt.Errorf("lane rule %d: %w", i+1, err))
		}
	}
	for i, rule := range cfg.Debounce {
		if err := rule.check(); err != nil {
			faults = append(faults, fmt.Errorf("debounce rule %d: %w", i+1, err))
		}
	}
	if c, ok := cfg.Queue.(interface{ Claims() queue.Claims }); ok && len(cfg.Debounce) > 0 && !c.Claims().Debounce {
		faults = append(faults, errors.New("this queue does not claim to debounce: leave the rules out, or use another backend"))
	}
	if cfg.PublicURL != "" && !strings.HasPrefix(cfg.PublicURL, "http://") && !strings.HasPrefix(cfg.PublicURL, "https://") {
		faults = append(faults, fmt.Errorf("PublicURL %q must begin with http:// or https://", cfg.PublicURL))
	}
	cfg.PublicURL = strings.TrimSuffix(cfg.PublicURL, "/")
	cfg.Tolerance = orDefault(cfg.Tolerance, DefaultTolerance)
	cfg.FutureTolerance = orDefault(cfg.FutureTolerance, DefaultTolerance)
	cfg.MaxWaiting = orDefault(cfg.MaxWaiting, DefaultMaxWaiting)
	cfg.EnqueueTimeout = orDefault(cfg.EnqueueTimeout, DefaultEnqueueTimeout)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return cfg, errors.Join(faults...)
}

// orDefault returns the value unless it is the zero value.
func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

func newEndpoints(providers map[string]ProviderConfig) (map[string]*endpoint, []error) {
	known := hooks()
	endpoints := make(map[string]*endpoint, len(providers))
	var faults []error
	if len(providers) == 0 {
		faults = append(faults, fmt.Errorf("set Providers: at least one of %s", strings.Join(Providers(), ", ")))
	}
	for name, p := range providers {
		newHook, builtIn := known[name]
		if p.Custom != nil {
			newHook = p.Custom.newHook
		}
		switch {
		case builtIn && p.Custom != nil:
			faults = append(faults, fmt.Errorf("provider %q is built in: give your own another name", name))
		case newHook == nil:
			faults = append(faults, fmt.Errorf("provider %q is not known: use one of %s", name, strings.Join(Providers(), ", ")))
		case p.needsSecret() && len(p.Secrets) == 0 || slices.Contains(p.Secrets, ""):
			faults = append(faults, fmt.Errorf("provider %q: set its signing secret; unsigned requests are never accepted", name))
		case p.MaxBody < 0:
			faults = append(faults, fmt.Errorf("provider %q: MaxBody must not be negative", name))
		default:
			h, err := newHook(p.Secrets)
			if err != nil {
				faults = append(faults, fmt.Errorf("provider %q: %w", name, err))
			}
			endpoints[name] = &endpoint{name: name, hook: h, maxBody: orDefault(p.MaxBody, DefaultMaxBody)}
		}
	}
	return endpoints, faults
}

// ServeHTTP answers one request.
func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) { rc.mux.ServeHTTP(w, r) }

func (rc *Receiver) serveWebhook(w http.ResponseWriter, r *http.Request) {
	ep, ok := rc.endpoints[r.PathValue("provider")]
	if !ok {
		rc.refuse(w, r, errProvider)
		return
	}
	if !rc.senders.admit(r.RemoteAddr, ep.name) {
		rc.refuse(w, r, notNow(errSender, ep.hook))
		return
	}
	err := rc.accept(w, r, ep)
	if text, ok := errors.AsType[greeting](err); ok {
		answer(w, http.StatusOK, string(text))
		return
	}
	if err != nil {
		rc.refuse(w, r, notNow(err, ep.hook))
		return
	}
	rc.acknowledge(w)
}

// acknowledge answers success. Where a crash behind the answer is possible, it must have left before; it looks the same.
func (rc *Receiver) acknowledge(w http.ResponseWriter) {
	if rc.cfg.Crash == nil {
		answer(w, http.StatusOK, answerQueued)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(answerQueued)))
	answer(w, http.StatusOK, answerQueued)
	_ = http.NewResponseController(w).Flush() // one that cannot has sent nothing, and its sender comes again
	rc.cfg.Crash.At(crashpoint.AfterAnswer)
}

// accept returns nil only when every event of the request is durable in the queue. A greeting is answered with its text and carries no event.
func (rc *Receiver) accept(w http.ResponseWriter, r *http.Request, ep *endpoint) error {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return errMethod
	}
	if err := checkContent(r.Header, ep.hook); err != nil {
		return err
	}
	body, err := readBody(w, r, ep.maxBody)
	if err != nil {
		return err
	}
	now := rc.cfg.Now()
	d := delivery{header: r.Header, body: body, method: r.Method, url: func() string { return rc.publicURL(r) }, now: now}
	if g, ok := ep.hook.(greeter); ok {
		if text, ok := g.greet(&d); ok {
			return greeting(text)
		}
	}
	if err := ep.hook.verify(&d, rc.window); err != nil {
		return err
	}
	jobs, err := ep.hook.split(&d)
	if err != nil {
		return err
	}
	for i := range jobs {
		jobs[i].Provider, jobs[i].ReceivedAt = ep.name, now
		jobs[i].Lane = laneOf(rc.cfg.Lanes, ep.name, jobs[i].Type)
		jobs[i].Debounce = debounceOf(rc.cfg.Debounce, &jobs[i])
	}
	return rc.enqueue(r.Context(), jobs)
}

// enqueue stores the jobs, or says why the sender has to come again.
func (rc *Receiver) enqueue(ctx context.Context, jobs []queue.Job) error {
	if len(jobs) == 0 {
		return nil // A signed batch without events.
	}
	select {
	case rc.waiting <- struct{}{}:
		defer func() { <-rc.waiting }()
	default:
		return errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, rc.cfg.EnqueueTimeout)
	defer cancel()
	rc.cfg.Crash.At(crashpoint.BeforeEnqueue)
	switch err := rc.queue.Enqueue(ctx, jobs...); {
	case err == nil:
		rc.cfg.Crash.At(crashpoint.AfterEnqueue)
		return nil
	case errors.Is(err, queue.ErrTooLarge):
		return errTooLarge
	default:
		rc.cfg.Logger.WarnContext(ctx, "enqueue failed; the sender was asked to try again",
			"provider", jobs[0].Provider, "event", jobs[0].EventID, "events", len(jobs), "err", err)
		return errQueue
	}
}

// publicURL is the URL under which the sender addressed this request.
func (rc *Receiver) publicURL(r *http.Request) string {
	base := rc.cfg.PublicURL
	if base == "" {
		// The Host header is the sender's to choose, but a signature over a false one needs the secret too.
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		base = scheme + r.Host
	}
	return base + r.URL.RequestURI()
}
