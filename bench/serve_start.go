package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"floodproof/reference/queue"
)

// serveFact is one line about a pipeline, for people. Where there are several texts each has a line.
type serveFact struct {
	name  string
	texts []string
}

// writeFacts writes them as two columns.
func writeFacts(w io.Writer, facts []serveFact) error {
	for _, f := range facts {
		name := f.name
		for _, text := range f.texts {
			if _, err := fmt.Fprintf(w, "%-10s %s\n", name, text); err != nil {
				return err
			}
			name = ""
		}
	}
	return nil
}

// describe says what the configuration comes to, without secrets. The downstream's URL may hold one.
func (c *serveConfig) describe(w io.Writer) error {
	lanes := []string{"(default): " + c.describeLane("")}
	for _, name := range c.laneNames() {
		lanes = append(lanes, name+": "+c.describeLane(name))
	}
	var providers []string
	for _, name := range c.providerNames() {
		providers = append(providers, fmt.Sprintf("%s (secrets: %d)", name, len(c.receivers[name].Secrets)))
	}
	password := "none: this machine only"
	if c.password != "" {
		password = "set"
	}
	return writeFacts(w, []serveFact{
		{"receiver", []string{c.listen}}, {"providers", []string{strings.Join(providers, ", ")}}, {"senders", []string{c.senders.describe()}},
		{"dashboard", []string{c.dashboard}}, {"password", []string{password}}, {"queue", []string{c.queueName()}}, {"kept", []string{c.keptFor()}},
		{"lanes", lanes}, {"alerts", []string{c.alerts.describe()}},
	})
}

// queueName is where the queue is, for people. An address may hold a password, so it is not said.
func (c *serveConfig) queueName() string {
	if c.embedded() {
		return c.backend + " in " + c.dir
	}
	return c.backend
}

// keptFor is how long done events are to be kept, for people.
func (c *serveConfig) keptFor() string {
	if c.retention == 0 {
		return "done events for ever"
	}
	return "done events for " + days(c.retention)
}

// serveStarted is what is known once everything is open.
type serveStarted struct {
	claims          queue.Claims
	sharesLimits    bool
	receiver, board net.Addr
}

// announce says, to people and in the log, what runs, and what it promises: nothing that is weaker than it looks goes unsaid.
func (c *serveConfig) announce(ctx context.Context, w io.Writer, log *slog.Logger, s serveStarted) {
	var urls []string
	for _, name := range c.providerNames() {
		urls = append(urls, fmt.Sprintf("http://%s/webhooks/%s", s.receiver, name))
	}
	password := "asks for the password, with any name"
	if c.password == "" {
		password = "no password: this machine only"
	}
	kept, trouble := c.kept(s.claims)
	facts := []serveFact{
		{"receiver", urls}, {"dashboard", []string{fmt.Sprintf("http://%s/ (%s)", s.board, password)}}, {"queue", []string{c.queueName()}},
		{"survives", []string{survives(s.claims.Durability)}}, {"kept", []string{kept + "; dead letters until somebody drops them"}},
	}
	if len(c.limits()) > 0 && !s.sharesLimits {
		facts = append(facts, serveFact{"rates", []string{"of this process alone: this backend cannot share them between several"}})
		trouble = append(trouble, "this backend cannot share rates: each process that serves the queue has them for itself")
	}
	_ = writeFacts(w, facts) // who closed standard output does not want to know
	log.InfoContext(ctx, "serving", "receiver", s.receiver.String(), "dashboard", s.board.String(), "backend", c.backend, "dir", c.dir, "engine", s.claims.Version,
		"survives", string(s.claims.Durability), "retention", c.retention.String(), "providers", c.providerNames(), "lanes", c.laneNames(), "password", c.password != "", "version", c.release)
	if d := s.claims.Durability; d != queue.DurabilityPower && d != queue.DurabilityFailover {
		log.WarnContext(ctx, "acknowledged events would not survive a loss of power", "backend", c.backend, "survives", string(d), "settings", s.claims.Settings)
	}
	for _, text := range trouble {
		log.WarnContext(ctx, text, "backend", c.backend)
	}
}

// survives is what an acknowledged event survives, for people.
func survives(d queue.Durability) string {
	switch d {
	case queue.DurabilityFailover:
		return "the loss of a machine of the queue's cluster"
	case queue.DurabilityPower:
		return "a loss of power"
	case queue.DurabilityProcess:
		return "the end of any process, but no loss of power"
	case queue.DurabilityNone:
	}
	return "nothing: events are lost with the queue's server"
}

// kept is how long done events are kept by a queue that promises this, and what about it is not as it was asked for.
func (c *serveConfig) kept(claims queue.Claims) (text string, trouble []string) {
	window := cmp.Or(claims.DedupWindow, queue.Forever)
	switch {
	case c.retention == 0 && claims.Settings["retention"] == "0s":
		return "of done events that they are known, for ever", nil
	case c.retention == 0 && window == queue.Forever:
		return "done events for ever", nil
	case window == queue.Forever:
		return "done events for ever: this backend has no retention", []string{fmt.Sprintf("this backend has no retention: done events are kept for ever, and not for %s", days(c.retention))}
	case window != c.retention:
		return "done events for " + days(window.Round(time.Second)), []string{fmt.Sprintf("this backend keeps done events for %s, and not for %s", days(window.Round(time.Second)), days(c.retention))}
	}
	return "done events for " + days(window), nil
}
