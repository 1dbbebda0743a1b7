// Package sentry takes alerts to Sentry, through its own SDK. It stands apart from package alert so that who does not use it does not link it.
//
// Of the process it sends the name of the host, the release and the environment; no modules, no variables, no stack, no request. An alert is an event of its own, grouped by lane and reason.
package sentry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	sdk "github.com/getsentry/sentry-go"

	"floodproof/reference"
	"floodproof/reference/alert"
)

// Config is what a Sender needs. DSN must be set.
type Config struct {
	// DSN says where; it is a secret.
	DSN reference.Secret
	// Environment and Release are shown with each event; "" leaves them to the SDK.
	Environment, Release string
	// Transport carries the requests. Nil: the standard one.
	Transport http.RoundTripper
}

// Sender is an alert.Sender. The SDK sends from goroutines of its own, which it starts with the first alert and Flush ends, with its own time-outs, and drops what Sentry asks it not to send.
type Sender struct {
	options sdk.ClientOptions
	client  *sdk.Client // nil before the first alert
}

// New checks the configuration. It starts nothing.
func New(cfg Config) (*Sender, error) {
	if _, err := sdk.NewDsn(string(cfg.DSN)); err != nil {
		return nil, errors.New("configure Sentry: the DSN is not one: copy it from the project's settings, under Client Keys") // the error would repeat it
	}
	return &Sender{options: sdk.ClientOptions{
		Dsn: string(cfg.DSN), Environment: cfg.Environment, Release: cfg.Release, HTTPTransport: cfg.Transport,
		// The defaults would send the list of modules and what they find out about the process.
		Integrations: func([]sdk.Integration) []sdk.Integration { return nil },
	}}, nil
}

// Send implements alert.Sender.
func (s *Sender) Send(_ context.Context, n alert.Notice) error {
	if s.client == nil {
		client, err := sdk.NewClient(s.options)
		if err != nil {
			return errors.New("the SDK does not start") // its error may repeat the DSN
		}
		s.client = client
	}
	e := sdk.NewEvent()
	e.Level, e.Logger, e.Timestamp = sdk.LevelError, "floodproof.dead_letters", n.At
	e.Message = n.Title() + ": " + n.Reason
	e.Fingerprint = []string{"floodproof", "dead letter", n.Lane, n.Reason}
	e.Tags = map[string]string{"provider": n.Provider, "type": n.Type, "lane": n.Lane, "event_id": n.EventID}
	e.Contexts["dead letter"] = sdk.Context{"attempts": strconv.Itoa(n.Attempts), "more": strconv.Itoa(n.More)}
	if s.client.CaptureEvent(e, nil, nil) == nil {
		return errors.New("the SDK did not take the event")
	}
	return nil
}

// Flush implements alert.Flusher.
func (s *Sender) Flush(ctx context.Context) error {
	if s.client == nil {
		return nil
	}
	defer s.client.Close()
	if !s.client.FlushWithContext(ctx) {
		return fmt.Errorf("not everything reached Sentry: %w", ctx.Err())
	}
	return nil
}

var (
	_ alert.Sender  = (*Sender)(nil)
	_ alert.Flusher = (*Sender)(nil)
)
