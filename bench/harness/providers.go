package harness

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"floodproof/bench/node"
	"floodproof/loadgen/provider"
	"floodproof/reference"
	"floodproof/scenarios"
)

// cast is who sends in a run: the built-in providers, as far as the scenario does not change them, and its own.
type cast struct {
	providers map[string]*provider.Provider
	// custom are the descriptions of the scenario's own providers, as a receiver needs them.
	custom map[string]*reference.CustomScheme
	// secrets are the active signing secrets of each provider, the current one first.
	secrets map[string][]string
	// fallbacks are the receiver's second URLs, relative to the first.
	fallbacks map[string]string
	// disables: the scenario asks for endpoints to be given up.
	disables bool
}

// newCast makes the providers of a scenario, with secrets that nobody had before.
func newCast(s *scenarios.Scenario) (*cast, error) {
	c := &cast{
		providers: map[string]*provider.Provider{},
		custom:    map[string]*reference.CustomScheme{},
		secrets:   map[string][]string{},
		fallbacks: map[string]string{},
		disables:  slices.ContainsFunc(s.Providers, func(p scenarios.ProviderSetting) bool { return p.Disable != nil }),
	}
	for _, p := range provider.All() {
		if c.disables {
			// Only those of which the scenario asks it give an endpoint up.
			p = provider.Override(p, provider.Overrides{Disable: &provider.Disable{}})
		}
		c.providers[p.Name] = p
	}
	active := map[string]int{}
	for _, setting := range s.Providers {
		p := c.providers[setting.Name]
		if setting.Custom != nil {
			own, err := provider.NewCustom(customProvider(setting.Name, setting.Custom))
			if err != nil {
				return nil, err
			}
			p, c.custom[setting.Name] = own, customScheme(setting.Custom)
		}
		if p == nil {
			return nil, fmt.Errorf("unknown provider %q", setting.Name)
		}
		c.fallbacks[setting.Name] = setting.Fallback
		p = provider.Override(p, overrides(setting))
		if own, ok := provider.Find(setting.Name); ok && setting.Disable != nil && setting.Disable.Published {
			p.Disable = own.Disable // Override made a copy
		}
		c.providers[setting.Name] = p
		active[setting.Name] = setting.Secrets
	}
	for name, p := range c.providers {
		for range max(1, active[name]) {
			c.secrets[name] = append(c.secrets[name], randomSecret(p))
		}
	}
	return c, nil
}

// fallback is the URL to which a provider turns with what it could not deliver to its first, "" if the scenario names none.
func (c *cast) fallback(name, first string) (string, error) {
	second := c.fallbacks[name]
	if second == "" {
		return "", nil
	}
	base, err := url.Parse(first)
	if err != nil {
		return "", fmt.Errorf("parse the URL of %s: %w", name, err)
	}
	u, err := base.Parse(second)
	if err != nil {
		return "", fmt.Errorf("parse the fallback URL of %s: %w", name, err)
	}
	return u.String(), nil
}

// tailScale is the compression at which the providers' retries run out after the day: none where they may give an endpoint up, which takes real time.
func (c *cast) tailScale() float64 {
	if c.disables {
		return 1
	}
	return 60
}

// overrides is what a scenario changes of a provider.
func overrides(s scenarios.ProviderSetting) provider.Overrides {
	o := provider.Overrides{
		Timeout: s.Timeout, Delays: s.Delays, Jitter: s.Jitter, MaxBatch: s.MaxBatch, MeanBatch: s.MeanBatch,
		MaxInFlight: s.MaxInFlight, RetryAfter: s.RetryAfter, Quota: s.Quota,
	}
	if d := s.Disable; d != nil {
		o.Disable = &provider.Disable{Failures: d.Failures, Attempts: d.Attempts, After: d.After}
		if len(d.On) > 0 {
			o.Disable.On = func(a provider.Answer) bool { return slices.Contains(d.On, a.Status) }
		}
	}
	return o
}

// customProvider is a scenario's own provider as the generator plays it.
func customProvider(name string, c *scenarios.CustomProvider) provider.Custom {
	g := c.Signature
	p := provider.Custom{
		Name: name, IDHeader: c.ID.Header, CanonicalID: c.ID.Header + c.ID.Pointer, Body: c.Body,
		SuccessMin: c.SuccessMin, SuccessMax: c.SuccessMax, Ends: c.Ends,
		Signature: provider.CustomSignature{
			Scheme: g.Scheme, Over: g.Over, Encoding: g.Encoding, Header: g.Header, Value: g.Value, Join: g.Join, Tolerance: g.Tolerance, Secret: g.Secret,
		},
	}
	for _, h := range c.Headers {
		p.Headers = append(p.Headers, provider.CustomHeader(h))
	}
	for _, t := range c.Types {
		p.Types = append(p.Types, provider.CustomType(t))
	}
	return p
}

// customScheme is a scenario's own provider as the receiver verifies it.
func customScheme(c *scenarios.CustomProvider) *reference.CustomScheme {
	g := c.Signature
	s := &reference.CustomScheme{
		Scheme: g.Scheme, Over: g.Over, Encoding: g.Encoding, Header: g.Header, Value: g.Value, Join: g.Join,
		TimestampHeader: g.TimestampHeader, Tolerance: g.Tolerance, Secret: g.Secret,
		ID: reference.CustomPlace(c.ID), Type: reference.CustomPlace(c.Type), Resource: reference.CustomPlace(c.Resource), Version: reference.CustomPlace(c.Version),
	}
	for _, h := range c.Headers {
		if strings.EqualFold(h.Name, "Content-Type") {
			s.ContentType = h.Value
		}
	}
	return s
}

// env is what a process of the target needs to receive from the cast.
func (c *cast) env() ([]string, error) {
	var env []string
	for name, secrets := range c.secrets {
		if own := c.custom[name]; own != nil && own.Scheme == "none" {
			continue
		}
		shown := make([]string, len(secrets))
		for i, secret := range secrets {
			shown[i] = verification(c.providers[name], secret)
		}
		env = append(env, node.SecretVariables(name, shown)...)
	}
	if len(c.custom) > 0 {
		text, err := json.Marshal(c.custom)
		if err != nil {
			return nil, fmt.Errorf("describe the scenario's own providers: %w", err)
		}
		env = append(env, node.ProvidersVariable+"="+string(text))
	}
	slices.Sort(env)
	return env, nil
}
