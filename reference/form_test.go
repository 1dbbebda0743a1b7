package reference

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseForm(t *testing.T) {
	for body, want := range map[string]form{
		"":                                nil,
		"a=1":                             {{"a", "1"}},
		"a=1&b=2&a=3":                     {{"a", "1"}, {"b", "2"}, {"a", "3"}},
		"a&b=":                            {{"a", ""}, {"b", ""}},
		"a+b=%2B+%41%c3%9F":               {{"a b", "+ A\u00df"}},
		"a=b=c":                           {{"a", "b=c"}},
		"%3B=%26%3D%00":                   {{";", "&=\x00"}},
		"a.b-c_d~e=*()'!":                 {{"a.b-c_d~e", "*()'!"}},
		"a=\xff":                          {{"a", "\xff"}},
		strings.Repeat("a=1&", 2) + "a=1": {{"a", "1"}, {"a", "1"}, {"a", "1"}},
	} {
		if got, ok := parseForm([]byte(body)); !ok || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v; want %q", body, got, ok, want)
		}
	}
	for _, body := range []string{
		"&", "a=1&", "&a=1", "a=1&&b=2", "=1", "=", "a=1;b=2", "a;=1", "a=%", "a=%4", "a=%zz", "a=%4g", "%=1", "a=%%41",
		strings.Repeat("a=1&", maxFormFields) + "a=1",
	} {
		if got, ok := parseForm([]byte(body)); ok {
			t.Errorf("%.40q: got %.40q, want none", body, got)
		}
	}
	if f, ok := parseForm([]byte(strings.Repeat("a=1&", maxFormFields-1) + "a=1")); !ok || len(f) != maxFormFields {
		t.Errorf("%d fields of %d, %v", len(f), maxFormFields, ok)
	}
}

func TestFormOnly(t *testing.T) {
	f, _ := parseForm([]byte("a=1&b=2&b=2&c=&A=3"))
	for name, want := range map[string]string{"a": "1", "b": "", "c": "", "A": "3", "d": ""} {
		if got := f.only(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// FuzzParseForm: what it takes, net/url takes too and understands in the same way; what it sorts are the same pairs, in order and without repetition.
func FuzzParseForm(f *testing.F) {
	for _, seed := range []string{"", "a=1&b=2", "a=1&a=1&a=2", "a=%41+%zz", "a;b=1", "a=1&&b", "=&=", "%00=%ff&+=+", "a=%E4%BD%A0&\xff=1", strings.Repeat("x&", 40)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := parseForm(body)
		if !ok {
			return
		}
		values, err := url.ParseQuery(string(body))
		if err != nil {
			t.Fatalf("%q: taken, while net/url says %v", body, err)
		}
		same := url.Values{}
		for _, field := range got {
			same.Add(field.name, field.value)
		}
		if !reflect.DeepEqual(values, same) {
			t.Fatalf("%q: got %q, net/url %q", body, got, values)
		}
		sorted := got.sorted()
		for i := 1; i < len(sorted); i++ {
			if a, b := sorted[i-1], sorted[i]; a.name > b.name || a.name == b.name && a.value >= b.value {
				t.Fatalf("%q: %q before %q", body, a, b)
			}
		}
		for _, field := range got {
			if !slices.Contains(sorted, field) {
				t.Fatalf("%q: %q is lost", body, field)
			}
		}
	})
}
