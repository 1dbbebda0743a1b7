package scenarios_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/scenarios"
)

// withProviders is a scenario with a section of providers and a mix.
func withProviders(mix, providers string) string {
	return "format: 1\nwhy: Whose rules?\nload: {events: 1, mix: " + mix + "}\nsegments: [{name: day, until: \"24:00\", scale: 1}]\nproviders:\n" + providers
}

const acme = `  acme:
    provider: custom
    signature:
      scheme: hmac-sha256
      over: "{timestamp}.{body}"
      encoding: base64
      header: X-Acme-Signature
      value: "t={timestamp},v1={signatures}"
      join: ",v1="
      tolerance: 2m
      secret: base64
    headers: {X-Acme-Event: "{type}", X-Acme-Delivery: "{id}", Content-Type: application/json; charset=utf-8, X-Acme-Timestamp: "{timestamp}", X-Acme-Api: 2026-01-01}
    id: header x-acme-delivery
    type: body /data/0/a~1b
    resource: body /resource
    version: body /version
    body: '{"id":"{id}","data":[{"a/b":"{type}"}],"at":"{time}","resource":"{resource}","version":{version},"try":{attempt},"pad":"{pad:1500}"}'
    types: {order.created: 3, order.updated: 1.5}
    success: 200-204
    ends: [410, 406]
    timeout: 3s
    delays: [1m, 10m, 48h]
    jitter: 20%
    secrets: 2
    retry_after: true
    max_in_flight: 5
    disable: {failures: 8, after: 72h, on: [410]}
`

// TestProviderFallbackAndPublishedRule: a second URL for those who have one, and the rule for giving up that the provider publishes.
func TestProviderFallbackAndPublishedRule(t *testing.T) {
	for _, tt := range []struct{ name, providers, want string }{
		{"both", "  github: {fallback: '/webhooks/github?half=2', disable: published}\n", ""},
		{"absolute", "  github: {fallback: 'https://backup.test/hooks', disable: published}\n", ""},
		{"not a URL", "  github: {fallback: 'ftp://backup.test/hooks'}\n", "is no URL for it"},
		{"nobody's", "  stripe: {fallback: /second}\n", "stripe has no fallback URL; remove this line"},
		{"another word", "  github: {disable: always}\n", "providers.github.disable is"},
		{"of one's own", strings.Replace(acme, "disable: {failures: 8, after: 72h, on: [410]}", "disable: published", 1), "acme is your own provider, of which nothing is published"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := scenarios.Load("x", []byte(withProviders("{acme: 1, stripe: 2, github: 1}", tt.providers+map[bool]string{true: "", false: acme}[strings.Contains(tt.providers, "acme:")])), vocabulary())
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want one about %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p := s.Providers[0]; p.Fallback == "" || p.Disable == nil || !p.Disable.Published {
				t.Errorf("got %+v", p)
			}
		})
	}
}

// TestProviderQuota: how much a provider sends of one customer can be changed where it has such a limit.
func TestProviderQuota(t *testing.T) {
	s, err := scenarios.Load("x", []byte(withProviders("{stripe: 2, github: 1}", "  github: {quota: 50}\n")), vocabulary())
	if err != nil || s.Providers[0].Quota != 50 {
		t.Errorf("got %+v, error %v, want a quota of 50", s.Providers, err)
	}
	_, err = scenarios.Load("x", []byte(withProviders("{stripe: 2, github: 1}", "  stripe: {quota: 50}\n")), vocabulary())
	if want := "stripe has no quota; remove this line"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one about %q", err, want)
	}
}

func TestProviders(t *testing.T) {
	text := withProviders("{acme: 1, stripe: 2, hubspot: 1}", `  stripe: {timeout: 20s, delays: [5m, 1h], jitter: 0%, secrets: 2, retry_after: false, disable: {attempts: 3}}
`+acme+`  hubspot: {delays: [], max_batch: 10, mean_batch: 2.5}
`)
	s, err := scenarios.Load("x", []byte(text), vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	jitter, none, yes, no := 0.2, 0.0, true, false
	want := []scenarios.ProviderSetting{
		{
			Name: "stripe", Line: 6, Timeout: 20 * time.Second, Delays: []time.Duration{5 * time.Minute, time.Hour},
			Jitter: &none, Secrets: 2, RetryAfter: &no, Disable: &scenarios.Disable{Attempts: 3},
		},
		{
			Name: "acme", Line: 7, Timeout: 3 * time.Second, Delays: []time.Duration{time.Minute, 10 * time.Minute, 48 * time.Hour},
			Jitter: &jitter, Secrets: 2, RetryAfter: &yes, MaxInFlight: 5,
			Disable: &scenarios.Disable{Failures: 8, After: 72 * time.Hour, On: []int{410}},
			Custom: &scenarios.CustomProvider{
				Signature: scenarios.Signature{
					Scheme: "hmac-sha256", Over: "{timestamp}.{body}", Encoding: "base64", Header: "X-Acme-Signature",
					Value: "t={timestamp},v1={signatures}", Join: ",v1=", Tolerance: 2 * time.Minute, Secret: "base64",
				},
				Headers: []scenarios.Header{
					{Name: "X-Acme-Event", Value: "{type}"}, {Name: "X-Acme-Delivery", Value: "{id}"}, {Name: "Content-Type", Value: "application/json; charset=utf-8"},
					{Name: "X-Acme-Timestamp", Value: "{timestamp}"}, {Name: "X-Acme-Api", Value: "2026-01-01"},
				},
				ID: scenarios.Place{Header: "x-acme-delivery"}, Type: scenarios.Place{Pointer: "/data/0/a~1b"},
				Resource: scenarios.Place{Pointer: "/resource"}, Version: scenarios.Place{Pointer: "/version"},
				Body:       `{"id":"{id}","data":[{"a/b":"{type}"}],"at":"{time}","resource":"{resource}","version":{version},"try":{attempt},"pad":"{pad:1500}"}`,
				Types:      []scenarios.TypeShare{{Name: "order.created", Weight: 3}, {Name: "order.updated", Weight: 1.5}},
				SuccessMin: 200, SuccessMax: 204, Ends: []int{410, 406},
			},
		},
		{Name: "hubspot", Line: 34, Delays: []time.Duration{}, MaxBatch: 10, MeanBatch: 2.5},
	}
	if diff := cmp.Diff(want, s.Providers); diff != "" {
		t.Errorf("Providers differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]scenarios.Share{{Provider: "acme", Weight: 1}, {Provider: "stripe", Weight: 2}, {Provider: "hubspot", Weight: 1}}, s.Load.Mix); diff != "" {
		t.Errorf("Mix differs (-want +got):\n%s", diff)
	}
}

// smallestAcme has only what must be written.
const smallestAcme = `  acme:
    provider: custom
    signature: {scheme: SCHEME}
    id: body /id
    type: body /type
    body: '{"id":"{id}","type":"{type}"}'
    types: {a: 1}
`

func TestProviderDefaults(t *testing.T) {
	tests := []struct {
		scheme string
		want   scenarios.Signature
	}{
		{"none", scenarios.Signature{Scheme: "none"}},
		{"hmac-sha1, header: X-S", scenarios.Signature{Scheme: "hmac-sha1", Over: "{body}", Encoding: "hex", Header: "X-S", Value: "{signature}", Join: ",", Secret: "utf8"}},
		{"ed25519, header: X-S", scenarios.Signature{Scheme: "ed25519", Over: "{body}", Encoding: "hex", Header: "X-S", Value: "{signature}", Join: ",", Secret: "base64"}},
		{
			"hmac-sha512, header: X-S, value: '{timestamp_ms} {signature}', over: \"{method}{path}{timestamp_ms}{body}\\n\"",
			scenarios.Signature{
				Scheme: "hmac-sha512", Over: "{method}{path}{timestamp_ms}{body}\n", Encoding: "hex", Header: "X-S", Value: "{timestamp_ms} {signature}", Join: ",",
				Secret: "utf8", Tolerance: 5 * time.Minute,
			},
		},
	}
	for _, tt := range tests {
		text := withProviders("{acme: 1}", strings.Replace(smallestAcme, "SCHEME", tt.scheme, 1))
		s, err := scenarios.Load("x", []byte(text), vocabulary())
		if err != nil {
			t.Errorf("%s: %v", tt.scheme, err)
			continue
		}
		if diff := cmp.Diff(tt.want, s.Providers[0].Custom.Signature); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.scheme, diff)
		}
	}
}

// TestTimestampHeader: the signed time stamp is where the signature's header or another one shows it.
func TestTimestampHeader(t *testing.T) {
	for value, want := range map[string]string{"t={timestamp};{signature}": "", "{signature}": "X-At"} {
		text := withProviders("{acme: 1}", strings.Replace(smallestAcme, "SCHEME}", "hmac-sha1, header: X-S, over: '{timestamp}{body}', value: '"+value+"'}\n    headers: {X-Note: 'at {timestamp}', X-At: '{timestamp}'}", 1))
		s, err := scenarios.Load("x", []byte(text), vocabulary())
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Providers[0].Custom.Signature.TimestampHeader; got != want {
			t.Errorf("%s: the time stamp is in header %q, want %q", value, got, want)
		}
	}
}

// TestLatestOfOwnTypes: the types of a scenario's own provider are known, those of a built-in one are not.
func TestLatestOfOwnTypes(t *testing.T) {
	text := strings.Replace(withProviders("{acme: 1}", strings.Replace(smallestAcme, "SCHEME", "none", 1)), "mix:", "latest: [acme/a, acme/b], mix:", 1)
	_, err := scenarios.Load("x", []byte(text), vocabulary())
	if got, want := errText(err), `x.yaml:3: acme has no event type "b"; did you mean "a"?`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func errText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

func TestBodyFile(t *testing.T) {
	dir := t.TempDir()
	body := `{"id":"{id}","type":"{type}","pad":"{pad:10}"}`
	for name, text := range map[string]string{"order.json": body + "\n", "typo.json": `{"id":"{idd}"}`, "huge.json": `"` + strings.Repeat("x", 1_000_001) + `"`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ file, want string }{
		{"order.json", "no error"},
		{"gone.json", "own.yaml:11: providers.acme.body_file cannot be read: "},
		{"../order.json", `own.yaml:11: providers.acme.body_file is "../order.json"; name a file beside the scenario or below`},
		{"/etc/hostname", `own.yaml:11: providers.acme.body_file is "/etc/hostname"; name a file beside the scenario or below`},
		{"typo.json", `own.yaml:11: providers.acme.body_file has the unknown piece {idd}; did you mean "id"?`},
		{"huge.json", "own.yaml:11: the body has 1000001 bytes; keep it below 1000000"},
	}
	for _, tt := range tests {
		text := withProviders("{acme: 1}", strings.NewReplacer("SCHEME", "none", `body: '{"id":"{id}","type":"{type}"}'`, "body_file: "+tt.file).Replace(smallestAcme))
		s, err := scenarios.Load(filepath.Join(dir, "own.yaml"), []byte(text), vocabulary())
		if got := strings.ReplaceAll(errText(err), dir+string(filepath.Separator), ""); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: got  %s\nwant %s", tt.file, got, tt.want)
		}
		if err == nil && s.Providers[0].Custom.Body != body {
			t.Errorf("body is %q, want %q", s.Providers[0].Custom.Body, body)
		}
	}
	_, err := scenarios.Load("shipped", []byte(withProviders("{acme: 1}", strings.NewReplacer("SCHEME", "none", "body: '", "body_file: '").Replace(smallestAcme))), vocabulary())
	if want := "providers.acme.body_file stands in a scenario that is not a file; write the body itself"; !strings.Contains(errText(err), want) {
		t.Errorf("got  %s\nwant %s", errText(err), want)
	}
}
