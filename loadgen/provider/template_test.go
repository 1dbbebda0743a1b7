package provider

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
)

func TestCompile(t *testing.T) {
	resolve := func(name string) slot[int] {
		if name == "n" {
			return number(func(v *int) uint64 { return uint64(*v) })
		}
		return nil
	}
	tests := []struct{ name, src, want, failure string }{
		{"no slot", `{"a":1}`, `{"a":1}`, ""},
		{"in a string", `{"a":"x${n}y${n}"}`, `{"a":"x7y7"}`, ""},
		{"instead of a string", `["#{n}","#{n}"]`, `[7,7]`, ""},
		{"beside a hash", `"##${n}"`, `"##7"`, ""},
		{"unknown", `"${m}"`, "", `unknown slot "m"`},
		{"misspelt", `"${N}"`, "", "misspelt"},
		{"raw inside of a string", `"a#{n}"`, "", "misspelt"},
		{"include that was not replaced", `"@Other"`, "", "misspelt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tpl, err := compile(tt.src, resolve)
			if tt.failure != "" {
				if err == nil || !strings.Contains(err.Error(), tt.failure) {
					t.Fatalf("error %v, want one with %q", err, tt.failure)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			seven := 7
			if got := string(tpl.append([]byte("> "), &seven)); got != "> "+tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	src, err := expand("github", "push_repo", "repo")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"full_name":"${repo.full}"`, `"owner":{"name":"${repo.owner.login}"`, `"login":"${repo.owner.login}"`, `"forks_url":"https://api.github.com/repos/${repo.full}/forks"`} {
		if !strings.Contains(src, want) {
			t.Errorf("no %s in %s", want, src)
		}
	}
	if _, err := expand("github", "missing", ""); err == nil {
		t.Error("a missing template is no error")
	}
}

// TestTemplatesAreJSON: each file is valid JSON by itself, so that editors and reviewers can read it.
func TestTemplatesAreJSON(t *testing.T) {
	files := 0
	err := fs.WalkDir(bodies, "bodies", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(bodies, path)
		if err == nil && !json.Valid(raw) {
			t.Errorf("%s is not valid JSON", path)
		}
		files++
		return err
	})
	if err != nil || files < 20 {
		t.Errorf("%d templates, %v", files, err)
	}
}

// TestVocabulary: what the bodies are made of needs no escaping any more.
func TestVocabulary(t *testing.T) {
	lists := [][]string{mailHosts, streets, adjectives, products, variants, vendors, notes, sentences, subjects, repoWords, repoKinds, languages, shopNames, stages, changeSources}
	for _, list := range lists {
		for _, s := range list {
			if !json.Valid([]byte(`"` + s + `"`)) {
				t.Errorf("%q is not the inside of a JSON string", s)
			}
		}
	}
	for _, n := range append(append([]name{}, givenNames...), familyNames...) {
		if len(n.plain) < 3 || strings.Trim(n.plain, "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%q is no login", n.plain)
		}
	}
}

// TestResourcesAreDistinct: the numbers by which a receiver tells resources apart do not meet.
func TestResourcesAreDistinct(t *testing.T) {
	const resources = 200_000
	issue := activitySlots(nil)["issue_id"]
	numbers := map[string]func(e Event) string{
		"shopify order": func(e Event) string {
			var o order
			o.draw(e)
			return string(appendCents(nil, o.id))
		},
		"hubspot object": func(e Event) string {
			c := changeOf(e, 1)
			return string(appendCents(nil, c.object()))
		},
		"github issue": func(e Event) string { return string(issue(nil, &activity{e: e})) },
	}
	for name, numberOf := range numbers {
		seen := make(map[string]bool, resources)
		for n := range uint64(resources) {
			seen[numberOf(Event{Key: n, ResourceKey: mix(n + 1), Version: 1})] = true
		}
		if len(seen) != resources {
			t.Errorf("%s: %d of %d meet", name, resources-len(seen), resources)
		}
	}
}
