package provider

import "time"

// Svix's behaviour, read in November 2026: the hosted service where it is documented (https://docs.svix.com/retries), else the open source server
// (https://github.com/svix/svix-webhooks, v1.100.0 of 2026-08-21, server/svix-server/src/worker.rs and core/webhook_http_client.rs).
const (
	// The hosted service waits 15 s (https://docs.svix.com/retries); the default of the open source server is 30 s.
	svixTimeout = 15 * time.Second
	// Five minutes to both sides: https://docs.svix.com/receiving/verifying-payloads/how-manual
	svixTolerance = 5 * time.Minute
	// A delay is multiplied by something between 0.8 and 1.2: worker.rs.
	svixJitter = 0.2
	// After a time-out the next attempt is at least so far: worker.rs.
	svixAfterTimeout = time.Minute
	// A request that fails without an answer within this time is sent again at once, with the same headers: webhook_http_client.rs.
	svixResend = time.Second
	// "If all attempts to a specific endpoint fail for a period of 5 days, the endpoint will be disabled": https://docs.svix.com/retries
	svixDisable = 5 * 24 * time.Hour
	svixAgent   = "Svix-Webhooks/1.100.0"
)

// svixDelays are the waits after each of seven failures: https://docs.svix.com/retries
func svixDelays() []time.Duration {
	return []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour}
}

// svixDelay is the wait before the next attempt, jitter apart. Retry-After is honoured on any answer that is not a success, but only within once and twice the
// wait that was due anyway (worker.rs): a receiver can slow Svix down and cannot stop it.
//
// Note: the server also has a rule that waits a minute after 429. Its own code never gets there, so that it is left out here.
func svixDelay(a Answer, scheduled time.Duration) time.Duration {
	if a.TimedOut {
		scheduled = max(scheduled, svixAfterTimeout)
	}
	if a.RetryAfter > 0 {
		return min(max(a.RetryAfter, scheduled), 2*scheduled)
	}
	return scheduled
}

// newSvix returns Svix, sending what Clerk, one of its customers, sends about users (https://clerk.com/docs/guides/development/webhooks/overview, November 2026).
// Header names are in Title-Case, as the open source server writes them and as net/http does. White-labelled Svix sends webhook-* instead: that is
// standard-webhooks.
func newSvix() *Provider {
	r := &svix{headers: headerNames("Content-Type", "User-Agent", "Accept", "svix-id")}
	signature := newStandardSignature("svix", sharedMark)
	slots := accountSlots()
	resolve := func(name string) slot[account] { return slots[name] }
	for _, k := range svixKinds {
		r.objects = append(r.objects, mustCompile("svix", k.body, resolve))
	}
	slots["data"] = func(dst []byte, a *account) []byte { return r.objects[a.kind].append(dst, a) }
	r.event = mustCompile("svix", "event", resolve)
	return &Provider{
		Name:        "svix",
		CanonicalID: "svix-id",
		Timeout:     svixTimeout,
		SuccessMin:  200, SuccessMax: 299,
		Delays: svixDelays(), Jitter: svixJitter, Delay: svixDelay,
		Resend: svixResend,
		// "webhook-delivery: abort-message" ends the retries of the hosted service: https://docs.svix.com/retries
		Ends:     func(a Answer) bool { return a.Header.Get("Webhook-Delivery") == "abort-message" },
		Disable:  Disable{After: svixDisable},
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		Tolerance: svixTolerance, FutureTolerance: svixTolerance,
		ID:        func(e Event) string { return string(appendMessageID(nil, e)) },
		Type:      func(e Event) string { return svixKindOf(e).eventType(e) },
		Render:    r.render,
		Sign:      signature.sign,
		Tamper:    tamperer("timestamp"),
		NewSecret: newSharedSecret,
		PayloadOf: whole,
	}
}

// svixKinds are kinds of resources, by how often they change. The types are Clerk's.
var svixKinds = []kind{
	{"user", "user.created", "user.updated", 40},
	{"session", "session.created", "session.ended", 40},
	{"membership", "organizationMembership.created", "organizationMembership.updated", 12},
	{"organization", "organization.created", "organization.updated", 8},
}

func svixKindOf(e Event) kind { return svixKinds[weighted(svixKinds, draw(e.ResourceDraw, 1))] }

// svix holds the parts of a request.
type svix struct {
	headers headers
	event   *template[account]
	// objects are in the order of svixKinds.
	objects []*template[account]
	spare   pool[account]
}

func (s *svix) render(r *Request, d Delivery) {
	a := s.spare.get()
	defer s.spare.put(a)
	a.draw(standIn(d))
	s.headers.set(r, "application/json", svixAgent, "*/*", string(appendMessageID(nil, a.e)))
	start := len(r.Body)
	r.Body = s.event.append(r.Body, a)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}
