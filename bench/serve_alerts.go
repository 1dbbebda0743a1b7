package bench

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"floodproof/reference"
	"floodproof/reference/alert"
	"floodproof/reference/alert/sentry"
	"floodproof/reference/queue"
)

// serveAlerts are where dead letters are told of. Each URL is a secret.
type serveAlerts struct {
	slackFile, webhookFile string
	every                  time.Duration
	slack, webhook, dsn    reference.Secret
	environment            string
}

// The variables of Sentry's own SDKs.
const (
	sentryDSN         = "SENTRY_DSN"
	sentryEnvironment = "SENTRY_ENVIRONMENT"
)

// read takes the secrets from variables and files.
func (a *serveAlerts) read(r *secretReader) {
	a.slack = reference.Secret(r.either(r.env["FLOODPROOF_ALERT_SLACK"], a.slackFile, "the Slack webhook"))
	a.webhook = reference.Secret(r.either(r.env["FLOODPROOF_ALERT_WEBHOOK"], a.webhookFile, "the alerts' webhook"))
	a.dsn, a.environment = reference.Secret(r.env[sentryDSN]), r.env[sentryEnvironment]
}

// describe says where to, for people, without the secrets.
func (a *serveAlerts) describe() string {
	var to []string
	for name, secret := range map[string]reference.Secret{"Slack": a.slack, "webhook": a.webhook, "Sentry": a.dsn} {
		if secret != "" {
			to = append(to, name)
		}
	}
	if len(to) == 0 {
		return "none"
	}
	slices.Sort(to)
	return strings.Join(to, ", ")
}

// open makes the alerter. Nothing is sent before it runs.
func (a *serveAlerts) open(release string, log *slog.Logger) (*alert.Alerter, error) {
	senders := map[string]alert.Sender{}
	var errs []error
	add := func(name string, secret reference.Secret, open func() (alert.Sender, error)) {
		if secret == "" {
			return
		}
		s, err := open()
		errs = append(errs, err)
		senders[name] = s
	}
	add("slack", a.slack, func() (alert.Sender, error) { return alert.NewSlack(a.slack) })
	add("webhook", a.webhook, func() (alert.Sender, error) { return alert.NewJSON(a.webhook) })
	add("sentry", a.dsn, func() (alert.Sender, error) {
		return sentry.New(sentry.Config{DSN: a.dsn, Environment: a.environment, Release: release})
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return alert.New(alert.Config{Senders: senders, Every: a.every, Logger: log})
}

// onDead tells of what a worker gave up.
func onDead(a *alert.Alerter) func(queue.Lease, string) {
	return func(l queue.Lease, reason string) {
		a.Dead(alert.Letter{Provider: l.Provider, EventID: l.EventID, Type: l.Type, Lane: l.Lane, Reason: reason, Attempts: l.Attempt, At: time.Now()})
	}
}

// tellDamaged tells of what the queue itself gives up, because it is damaged: no worker ever sees it.
func tellDamaged(q queue.Queue, a *alert.Alerter, log *slog.Logger) {
	t, ok := q.(queue.DeadTeller)
	if !ok {
		return
	}
	t.TellDead(func(l queue.DeadLetter) {
		log.Error("damaged job moved to the dead letters", "lane", l.Lane, "provider", l.Provider, "event", l.EventID, "attempt", l.Attempts, "reason", l.Reason)
		a.Dead(alert.Letter{Provider: l.Provider, EventID: l.EventID, Type: l.Type, Lane: l.Lane, Reason: l.Reason, Attempts: l.Attempts, At: l.At})
	})
}

// alertingQueue tells of what is dead when it comes: the worker never sees it. An event that is delivered again is told of again.
type alertingQueue struct {
	queue.Queue
	alerter *alert.Alerter
}

// Enqueue implements queue.Queue.
func (q alertingQueue) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	if err := q.Queue.Enqueue(ctx, jobs...); err != nil {
		return err
	}
	for i := range jobs {
		if j := &jobs[i]; j.DeadOnArrival != "" {
			q.alerter.Dead(alert.Letter{Provider: j.Provider, EventID: j.EventID, Type: j.Type, Lane: j.Lane, Reason: j.DeadOnArrival, At: time.Now()})
		}
	}
	return nil
}
