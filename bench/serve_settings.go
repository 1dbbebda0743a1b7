package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"floodproof/bench/backends"
	"floodproof/bench/node"
	"floodproof/reference"
)

// serveSetting is one setting that is a flag, a variable and a key of the file.
type serveSetting struct {
	name, doc string
	// variable is set where it is not the usual one.
	variable string
	set      func(text string) error
}

// key is the setting's name in a YAML file, env that of its variable.
func (s serveSetting) key() string { return strings.ReplaceAll(s.name, "-", "_") }

func (s serveSetting) env() string {
	if s.variable != "" {
		return s.variable
	}
	return "FLOODPROOF_" + strings.ToUpper(s.key())
}

// serveGroup are settings that belong together.
type serveGroup struct {
	title    string
	settings []serveSetting
}

// serveGroups are the settings of a configuration. Their defaults are set by defaultServe.
func serveGroups(c *serveConfig) []serveGroup {
	return []serveGroup{
		{"where it listens", c.listenSettings()},
		{"the queue", c.queueSettings()},
		{"what is called for an event", c.downstreamSettings()},
		{"lanes: each has these of its own where the file says so", c.laneSettings()},
		{"senders", c.senderSettings()},
		{"the dashboard, alerts and logs", c.watchSettings()},
	}
}

// serveSettings are all of them.
func serveSettings(c *serveConfig) (all []serveSetting) {
	for _, g := range serveGroups(c) {
		all = append(all, g.settings...)
	}
	return all
}

func plainText(into *string) func(string) error {
	return func(s string) error { *into = s; return nil }
}

func (c *serveConfig) listenSettings() []serveSetting {
	return []serveSetting{
		{name: "listen", doc: "`address` of the receiver (default 127.0.0.1:8080)", set: plainText(&c.listen)},
		{name: "dashboard", doc: "`address` of the dashboard and of /metrics (default 127.0.0.1:8081)", set: plainText(&c.dashboard)},
		{name: "public-url", doc: "`URL` under which providers reach the receiver, if a proxy stands before it", set: plainText(&c.publicURL)},
	}
}

func (c *serveConfig) queueSettings() []serveSetting {
	return []serveSetting{
		{name: "backend", doc: "`name` of the queue, of floodproof list backends (default " + backends.Default + ", which needs no server)", set: plainText(&c.backend)},
		{name: "dir", doc: "`directory` of what is kept on this machine, created if it is missing (default floodproof-queue)", set: plainText(&c.dir)},
		{name: "address-file", doc: "`file` that holds the address of its server; or " + node.AddressVariable, set: plainText(&c.addressFile)},
		{name: "namespace", doc: "`name` that keeps the queue apart from others on that server (default floodproof)", set: plainText(&c.namespace)},
		{name: "retention", doc: "`time` for which done events are kept, with their payloads, and known again; 0 keeps them for ever, dead letters always are (default 30d)", set: retention(&c.retention)},
		{name: "lease", doc: "`time` after which the job of a dead worker is given to another (default 30s)", set: duration(&c.lease)},
	}
}

func (c *serveConfig) downstreamSettings() []serveSetting {
	return []serveSetting{
		{name: "downstream", doc: "`URL` that is called for each event: POST URL/effects/{event id}; also " + node.SinkVariable, variable: node.SinkVariable, set: plainText(&c.downstream)},
		{name: "downstream-file", doc: "`file` that holds it, if there is a token in it", set: plainText(&c.downstreamFile)},
		{name: "steps", doc: "`steps` of an effect, PUT or POST and a name each, by commas, in place of the one POST", set: c.setSteps},
	}
}

func (c *serveConfig) laneSettings() []serveSetting {
	return []serveSetting{
		{name: "concurrency", doc: "`jobs` at once in each lane (default 16)", set: number(&c.all.concurrency)},
		{name: "rate", doc: "`calls` of the downstream, such as 40/s, 90/m or 1000/h, that all lanes without a rate of their own make together (default: no limit)", set: rate(&c.all.rate)},
		{name: "burst", doc: "`calls` of that rate that may be made at once (default 1)", set: number(&c.all.burst)},
		{name: "backoff", doc: "`time` to wait after the first failure, doubled with each further one (default 500ms)", set: duration(&c.all.backoff)},
		{name: "max-backoff", doc: "the longest `time` to wait (default 30s)", set: duration(&c.all.maxBackoff)},
		{name: "max-attempts", doc: "`leases` before a failing job may become a dead letter (default 20)", set: number(&c.all.maxAttempts)},
		{name: "give-up-after", doc: "and the `time` that it must have been tried (default 72h); 0: the attempts alone decide", set: giveUpAfter(&c.all.giveUpAfter)},
		{name: "lanes", doc: "`list` of lanes, as in the file, and in place of it", set: func(s string) error { return c.setList("lanes", s, c.readLanes) }},
		{name: "debounce", doc: "`list` of what is debounced, as in the file, and in place of it", set: func(s string) error { return c.setList("debounce", s, c.readDebounce) }},
	}
}

func (c *serveConfig) senderSettings() []serveSetting {
	return []serveSetting{
		{name: "sender-rate", doc: "`requests` that one sender may bring, such as 50/s; one more is not read and asked to come again (default: no limit)", set: rate(&c.senders.rate)},
		{name: "sender-burst", doc: "`requests` that it may bring at once (default: one second's)", set: number(&c.senders.burst)},
		{name: "sender-by", doc: "what one sender `is`: address, of IPv6 its /64, or provider, which is what is left behind a proxy (default address)", set: c.senders.setBy},
	}
}

func (c *serveConfig) watchSettings() []serveSetting {
	return []serveSetting{
		{name: "password-file", doc: "`file` that holds the dashboard's password; or FLOODPROOF_PASSWORD", set: plainText(&c.passwordFile)},
		{name: "hosts", doc: "`names`, by commas, under which browsers may reach the dashboard, besides localhost and addresses", set: c.setHosts},
		{name: "alert-slack-file", doc: "`file` that holds the URL of an incoming webhook of Slack, or of what understands the same; or FLOODPROOF_ALERT_SLACK", set: plainText(&c.alerts.slackFile)},
		{name: "alert-webhook-file", doc: "`file` that holds the URL to which alerts are posted as JSON; or FLOODPROOF_ALERT_WEBHOOK", set: plainText(&c.alerts.webhookFile)},
		{name: "alert-every", doc: "`time` between two alerts of one lane and reason, once five came at once (default 1m)", set: duration(&c.alerts.every)},
		{name: "log-level", doc: "`level`: debug, info, warn or error (default info)", set: c.setLevel},
	}
}

func (c *serveConfig) setSteps(s string) (err error) {
	c.steps, err = reference.ParseSteps(s)
	return err
}

func (c *serveConfig) setHosts(s string) error {
	c.hosts = strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}

func (c *serveConfig) setLevel(s string) error {
	if c.level.UnmarshalText([]byte(s)) != nil {
		return fmt.Errorf("%q is no level: use debug, info, warn or error", s)
	}
	return nil
}

// from is where one of some settings comes from, for errors: the first that was set.
func (c *serveConfig) from(names ...string) string {
	for _, name := range names {
		if origin := c.origins[name]; origin != "" {
			return origin
		}
	}
	return names[0]
}

// flatten are the errors of which one is made.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		return slices.Clone(many.Unwrap())
	}
	return []error{err}
}
