package bench

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"floodproof/bench/backends"
	"floodproof/bench/node"
	"floodproof/reference"
	"floodproof/reference/dashboard"
	"floodproof/reference/queue/sqlite"
)

// serveConfig is what `floodproof serve` was told, complete and checked.
type serveConfig struct {
	listen, dashboard, dir, publicURL, downstream string
	backend, address, addressFile, namespace      string
	retention                                     time.Duration
	alerts                                        serveAlerts
	senders                                       serveSenders
	lease                                         time.Duration
	steps                                         []reference.Step
	level                                         slog.Level
	hosts                                         []string
	// all is how lanes are worked on that do not say otherwise; its rate they have together.
	all      laneSettings
	lanes    []serveLane
	debounce []reference.DebounceRule
	// providers are what the file says of them; receivers are all, with their secrets.
	providers map[string]serveProvider
	receivers map[string]reference.ProviderConfig

	downstreamFile, passwordFile string
	password                     reference.Secret

	// release is that of this program, for alerts and the log.
	release string
	// origins are where the settings come from that are not as by default, by name.
	origins map[string]string
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

// defaultRetention is how long done events are kept: ten times as long as Stripe goes on trying, and a month of traffic to look at.
const defaultRetention = 30 * 24 * time.Hour

func retention(into *time.Duration) func(string) error {
	return func(text string) error {
		d, err := parseDays(text)
		if err != nil || d != 0 && d < sqlite.MinRetention {
			return fmt.Errorf("%q: write 0, or a time of %v or more, such as 30d or 72h", text, sqlite.MinRetention)
		}
		*into = d
		return nil
	}
}

func defaultServe() *serveConfig {
	return &serveConfig{
		listen: "127.0.0.1:8080", dashboard: "127.0.0.1:8081", dir: "floodproof-queue", backend: backends.Default, retention: defaultRetention,
		lease: 30 * time.Second, origins: map[string]string{},
		all: laneSettings{
			concurrency: 16, backoff: reference.DefaultBackoffBase, maxBackoff: reference.DefaultBackoffMax,
			maxAttempts: reference.DefaultMaxAttempts, giveUpAfter: reference.DefaultGiveUpAfter,
		},
	}
}

// loadServe reads all sources and checks what comes of them. Everything that is wrong is reported at once.
func loadServe(from serveSources) (*serveConfig, error) {
	c := defaultServe()
	env := variables(from.environ)
	faults := c.readSettings(from, env, serveSettings(c))
	faults = append(faults, c.readSecrets(env)...)
	faults = append(faults, c.check()...)
	return c, errors.Join(faults...)
}

// loadStore reads where the queue is, and what there is to say about it. What else is missing or wrong is the business of serve.
func loadStore(from serveSources) (*serveConfig, error) {
	c := defaultServe()
	env := variables(from.environ)
	faults := c.readSettings(from, env, serveSettings(c))
	r := &secretReader{env: env}
	c.readAddress(r)
	faults = append(faults, r.faults...)
	faults = append(faults, c.checkStore()...)
	return c, errors.Join(faults...)
}

// readSettings takes the settings from the file, the variables and the flags.
func (c *serveConfig) readSettings(from serveSources, env map[string]string, settings []serveSetting) (faults []error) {
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
			c.origins[s.name] = source.name
			for _, err := range flatten(s.set(source.text)) {
				faults = append(faults, fmt.Errorf("%s: %w", source.name, err))
			}
		}
	}
	return faults
}

// embedded reports whether the queue is in the directory.
func (c *serveConfig) embedded() bool {
	name, _, _ := strings.Cut(c.backend, "@")
	return name == backends.Default
}

// variables are those of ours, and of Sentry, that hold something.
func variables(environ []string) map[string]string {
	env := map[string]string{}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok && value != "" && (strings.HasPrefix(name, "FLOODPROOF_") || name == sentryDSN || name == sentryEnvironment) {
			env[name] = value
		}
	}
	return env
}

// check looks at the whole.
func (c *serveConfig) check() []error {
	faults := slices.Concat(c.checkAddresses(), c.checkStore(), c.checkLanes(), c.checkSenders())
	// What is missing is said here, and stood in for, so that the parts can say what else they find wrong.
	whole := *c
	if c.downstream == "" {
		faults = append(faults, fmt.Errorf("there is nothing to call for an event: set downstream, downstream-file or %s", node.SinkVariable))
		whole.downstream = "http://localhost"
	}
	if len(c.receivers) == 0 {
		faults = append(faults, fmt.Errorf("no provider has a secret: set %s, or that of another", node.SecretVariable("stripe")))
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
