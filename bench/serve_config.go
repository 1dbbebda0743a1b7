package bench

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"floodproof/bench/harness"
	"floodproof/reference"
	"floodproof/reference/dashboard"
)

// serveConfig is what `floodproof serve` was told, complete and checked.
type serveConfig struct {
	listen, dashboard, dir, publicURL, downstream string
	lease, giveUpAfter                            time.Duration
	concurrency, maxAttempts                      int
	steps                                         []reference.Step
	level                                         slog.Level
	hosts                                         []string
	lanes                                         []serveLane
	// providers are what the file says of them; receivers are all, with their secrets.
	providers map[string]serveProvider
	receivers map[string]reference.ProviderConfig

	downstreamFile, passwordFile string
	password                     reference.Secret
}

// serveLane is a rule that sends events into a lane. One of a lane's rules may say its concurrency.
type serveLane struct {
	name, provider, kind string
	concurrency          int
}

// serveProvider is what a file says of a provider.
type serveProvider struct {
	secretFile string
	maxBody    int64
}

// serveSources are where a configuration comes from.
type serveSources struct {
	flags   map[string]string
	environ []string
	file    string
}

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

// serveSettings are those of a configuration. Their defaults are set by defaultServe.
func serveSettings(c *serveConfig) []serveSetting {
	text := func(into *string) func(string) error {
		return func(s string) error { *into = s; return nil }
	}
	return []serveSetting{
		{name: "listen", doc: "`address` of the receiver (default 127.0.0.1:8080)", set: text(&c.listen)},
		{name: "dashboard", doc: "`address` of the dashboard and of /metrics (default 127.0.0.1:8081)", set: text(&c.dashboard)},
		{name: "dir", doc: "`directory` of the queue, created if it is missing (default floodproof-queue)", set: text(&c.dir)},
		{name: "public-url", doc: "`URL` under which providers reach the receiver, if a proxy stands before it", set: text(&c.publicURL)},
		{name: "downstream", doc: "`URL` that is called for each event: POST URL/effects/{event id}; also " + harness.SinkVariable, variable: harness.SinkVariable, set: text(&c.downstream)},
		{name: "downstream-file", doc: "`file` that holds it, if there is a token in it", set: text(&c.downstreamFile)},
		{name: "password-file", doc: "`file` that holds the dashboard's password", set: text(&c.passwordFile)},
		{name: "concurrency", doc: "`jobs` at once in each lane that does not say otherwise (default 16)", set: number(&c.concurrency)},
		{name: "max-attempts", doc: "`leases` before a failing job may become a dead letter (default 20)", set: number(&c.maxAttempts)},
		{name: "give-up-after", doc: "and the `time` that it must have been tried (default 72h)", set: duration(&c.giveUpAfter)},
		{name: "lease", doc: "`time` after which the job of a dead worker is given to another (default 30s)", set: duration(&c.lease)},
		{name: "steps", doc: "`steps` of an effect, PUT or POST and a name each, by commas", set: func(s string) (err error) {
			c.steps, err = reference.ParseSteps(s)
			return err
		}},
		{name: "hosts", doc: "`names`, by commas, under which browsers may reach the dashboard, besides localhost and addresses", set: func(s string) error {
			c.hosts = strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
			return nil
		}},
		{name: "log-level", doc: "debug, info, warn or error (default info)", set: func(s string) error {
			if c.level.UnmarshalText([]byte(s)) != nil {
				return fmt.Errorf("%q is no level: use debug, info, warn or error", s)
			}
			return nil
		}},
	}
}

func number(into *int) func(string) error {
	return func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 10_000 {
			return fmt.Errorf("%q: write a whole number from 1 to 10000", text)
		}
		*into = n
		return nil
	}
}

func duration(into *time.Duration) func(string) error {
	return func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q: write a time above 0, such as 30s or 72h", text)
		}
		*into = d
		return nil
	}
}

func defaultServe() *serveConfig {
	return &serveConfig{
		listen: "127.0.0.1:8080", dashboard: "127.0.0.1:8081", dir: "floodproof-queue", concurrency: 16,
		lease: 30 * time.Second, maxAttempts: reference.DefaultMaxAttempts, giveUpAfter: reference.DefaultGiveUpAfter,
	}
}

// loadServe reads all sources and checks what comes of them. Everything that is wrong is reported at once.
func loadServe(from serveSources) (*serveConfig, error) {
	c := defaultServe()
	settings := serveSettings(c)
	env := variables(from.environ)
	var faults []error
	if from.file == "" {
		from.file = env["FLOODPROOF_CONFIG"]
	}
	if from.file != "" {
		faults = append(faults, c.readFile(from.file, settings)...)
	}
	for _, s := range settings {
		for _, source := range []struct{ name, text string }{{s.env(), env[s.env()]}, {"--" + s.name, from.flags[s.name]}} {
			if source.text == "" {
				continue
			}
			if err := s.set(source.text); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", source.name, err))
			}
		}
	}
	faults = append(faults, c.readSecrets(env)...)
	faults = append(faults, c.check()...)
	return c, errors.Join(faults...)
}

// variables are those of ours that hold something.
func variables(environ []string) map[string]string {
	env := map[string]string{}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok && value != "" && strings.HasPrefix(name, "FLOODPROOF_") {
			env[name] = value
		}
	}
	return env
}

// check looks at the whole.
func (c *serveConfig) check() []error {
	faults := c.checkAddresses()
	for _, l := range c.lanes {
		if _, known := c.receivers[l.provider]; l.provider != "" && !known {
			faults = append(faults, fmt.Errorf("lane %s is for events of %s, which has no secret here", l.name, l.provider))
		}
	}
	// What is missing is said here, and stood in for, so that the parts can say what else they find wrong.
	whole := *c
	if c.downstream == "" {
		faults = append(faults, fmt.Errorf("there is nothing to call for an event: set downstream, downstream-file or %s", harness.SinkVariable))
		whole.downstream = "http://localhost"
	}
	if len(c.receivers) == 0 {
		faults = append(faults, fmt.Errorf("no provider has a secret: set %s, or that of another", harness.SecretVariable("stripe")))
		whole.receivers = map[string]reference.ProviderConfig{"stripe": {Secrets: []reference.Secret{"missing"}}}
	}
	_, err := assemble(&whole, unopened{}, slog.New(slog.DiscardHandler))
	return append(faults, err)
}

func (c *serveConfig) checkAddresses() []error {
	var faults []error
	// The receiver may listen anywhere: it takes nothing that is not signed.
	if err := dashboard.CheckAddress(c.listen, true); err != nil {
		faults = append(faults, fmt.Errorf("listen: %w", err))
	}
	if err := dashboard.CheckAddress(c.dashboard, c.password != ""); err != nil {
		faults = append(faults, fmt.Errorf("dashboard: %w", err))
	}
	return faults
}

// providerNames are the providers that are listened to, in order.
func (c *serveConfig) providerNames() []string { return slices.Sorted(maps.Keys(c.receivers)) }

// describe says what the configuration comes to, without secrets. The downstream's URL may hold one.
func (c *serveConfig) describe(w io.Writer) error {
	lanes := []string{fmt.Sprintf("(default) %d at once", c.concurrency)}
	for _, name := range c.laneNames() {
		lanes = append(lanes, fmt.Sprintf("%s %d at once", name, c.concurrencyOf(name)))
	}
	var providers []string
	for _, name := range c.providerNames() {
		providers = append(providers, fmt.Sprintf("%s (secrets: %d)", name, len(c.receivers[name].Secrets)))
	}
	password := "none: this machine only"
	if c.password != "" {
		password = "set"
	}
	_, err := fmt.Fprintf(w, "receiver   %s\ndashboard  %s\npassword   %s\nqueue      %s\nproviders  %s\nlanes      %s\ngives up   after %d attempts and %v\n",
		c.listen, c.dashboard, password, c.dir, strings.Join(providers, ", "), strings.Join(lanes, ", "), c.maxAttempts, c.giveUpAfter)
	return err
}
