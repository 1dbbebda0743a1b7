package tape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"floodproof/loadgen/provider"
)

// idsOf are all ids of a request by its provider's own words, as JSON or text.
func idsOf(t *testing.T, r Request) []string {
	t.Helper()
	places, err := placesOf(r.Provider)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, name := range places.headers {
		for _, f := range r.Headers {
			if strings.EqualFold(f.Name, name) {
				ids = append(ids, f.Value)
			}
		}
	}
	var v any
	if len(places.pointers) > 0 {
		d := json.NewDecoder(bytes.NewReader(r.Body.Bytes))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
	}
	for _, pointer := range places.pointers {
		ids = append(ids, follow(v, strings.Split(pointer, "/")[1:])...)
	}
	return ids
}

func follow(v any, path []string) []string {
	if len(path) == 0 {
		return []string{fmt.Sprint(v)}
	}
	switch v := v.(type) {
	case map[string]any:
		return follow(v[path[0]], path[1:])
	case []any:
		var all []string
		for _, x := range v {
			all = append(all, follow(x, path[1:])...)
		}
		return all
	}
	return nil
}

func TestRenewal(t *testing.T) {
	n := NewRenewal(7)
	supported := 0
	for _, p := range provider.All() {
		old, renewed := map[string]string{}, map[string]string{}
		for i := range uint64(40) {
			r := recorded(t, p, i%20) // the second twenty are duplicates
			before := idsIfKnown(t, r)
			if before == nil {
				if err := n.Apply(&r); err == nil {
					t.Fatalf("%s: ids were renewed that nobody finds", p.Name)
				}
				continue
			}
			body, headers := bytes.Clone(r.Body.Bytes), fmt.Sprint(r.Headers)
			if err := n.Apply(&r); err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
			after := idsOf(t, r)
			if len(after) != len(before) || len(r.Body.Bytes) != len(body) || len(fmt.Sprint(r.Headers)) != len(headers) {
				t.Fatalf("%s: the form of the request changed", p.Name)
			}
			for j, id := range before {
				checkRenewed(t, p.Name, id, after[j])
				if was, ok := old[after[j]]; ok && was != id {
					t.Errorf("%s: %s and %s became the same", p.Name, was, id)
				}
				if is, ok := renewed[id]; ok && is != after[j] {
					t.Errorf("%s: %s became both %s and %s", p.Name, id, is, after[j])
				}
				old[after[j]], renewed[id] = id, after[j]
			}
		}
		if len(old) > 0 {
			supported++
		}
	}
	if supported < 5 {
		t.Errorf("%d providers can get new ids, want stripe, shopify, hubspot, github and klaviyo at least", supported)
	}
}

// idsIfKnown is idsOf, nil where the provider's ids cannot be followed.
func idsIfKnown(t *testing.T, r Request) []string {
	t.Helper()
	if _, err := placesOf(r.Provider); err != nil {
		return nil
	}
	return idsOf(t, r)
}

// guid is a GUID at the end of an id.
var guid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// checkRenewed reports what a new id must not be.
func checkRenewed(t *testing.T, who, old, renewed string) {
	t.Helper()
	kind := old[:strings.LastIndexByte(old, '_')+1]
	if len(old) != len(renewed) || old == renewed || !strings.HasPrefix(renewed, kind) || guid.MatchString(old) != guid.MatchString(renewed) {
		t.Errorf("%s: %s became %s", who, old, renewed)
	}
}

func TestRenewalRefuses(t *testing.T) {
	n := NewRenewal(1)
	tests := []struct {
		r    Request
		want string
	}{
		{Request{Provider: "acme"}, `it is not known where the ids of "acme" are`},
		{Request{}, "record with --provider"},
		{Request{Provider: "github"}, "without the header X-GitHub-Delivery"},
		{Request{Provider: "stripe", Body: Body{Bytes: []byte(`{"object":"event"}`)}}, "without an id at /id"},
		{Request{Provider: "stripe", Body: Body{Bytes: []byte(`{"id":null}`)}}, "without an id at /id"},
		{Request{Provider: "hubspot", Body: Body{Bytes: []byte(`[{"objectId":"x","eventId":7},{"objectId":0}]`)}}, ""},
		{Request{Provider: "hubspot", Body: Body{Bytes: []byte(`[{"objectId":1.5}]`)}}, "without an id at /N/objectId"},
		{Request{Provider: "stripe", Body: Body{Bytes: []byte(`{"id": cut`)}}, ""},
	}
	for _, tt := range tests {
		switch err := n.Apply(&tt.r); {
		case tt.want == "" && err != nil:
			t.Errorf("%s %s: %v", tt.r.Provider, tt.r.Body.Bytes, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s %s: %v, want %s", tt.r.Provider, tt.r.Body.Bytes, err, tt.want)
		}
	}
}

// TestRenewIsABijection on all numbers of three digits, and for random ids under many seeds.
func TestRenewIsABijection(t *testing.T) {
	for seed := range uint64(20) {
		n := NewRenewal(seed)
		seen := map[string]bool{}
		for i := 100; i < 1000; i++ {
			id := []byte(fmt.Sprint(i))
			if !n.renew(id) || id[0] == '0' || string(id) == fmt.Sprint(i) || seen[string(id)] {
				t.Fatalf("seed %d: %d became %s, seen %v", seed, i, id, seen[string(id)])
			}
			seen[string(id)] = true
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	id := []byte("evt_1SNc4hKd8WcGq23rAnTfxIL6")
	other := map[string]bool{}
	for range 100 {
		renewed := bytes.Clone(id)
		NewRenewal(r.Uint64()).renew(renewed)
		if !bytes.HasPrefix(renewed, []byte("evt_")) || other[string(renewed)] {
			t.Errorf("became %s, not for the first time: %v", renewed, other[string(renewed)])
		}
		other[string(renewed)] = true
	}
	for _, still := range []string{"", "0", "-", "evt_"} {
		if b := []byte(still); NewRenewal(1).renew(b) || string(b) != still {
			t.Errorf("%q became %q", still, b)
		}
	}
}
