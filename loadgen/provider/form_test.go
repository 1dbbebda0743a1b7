package provider

import (
	"net/url"
	"strings"
	"testing"
)

func TestFormSource(t *testing.T) {
	tests := []struct{ name, object, want, failure string }{
		{"plain", `{"To":"+1 555","From":""}`, "To=%2B1+555&From=", ""},
		{"slots", `{"A":"x&${n};${n}=","B":"${n}"}`, "A=x%26${n}%3B${n}%3D&B=${n}", ""},
		{"name", `{"Binding.Address & co":"1"}`, "Binding.Address+%26+co=1", ""},
		{"JSON inside", `{"A":"{\"v\":${n}}"}`, "A=%7B%22v%22%3A${n}%7D", ""},
		{"nothing", `{}`, "", ""},
		{"not an object", `["a"]`, "", "one object"},
		{"not a string", `{"a":1}`, "", "strings"},
		{"misspelt", `{"a":"${N}"}`, "", "misspelt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := formSource(tt.object)
			if tt.failure != "" {
				if err == nil || !strings.Contains(err.Error(), tt.failure) {
					t.Fatalf("error %v, want one with %q", err, tt.failure)
				}
				return
			}
			if got != tt.want || err != nil {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

// FuzzEscapeForm agrees with net/url about every text, and leaves what was before it alone.
func FuzzEscapeForm(f *testing.F) {
	for _, seed := range []string{"", "plain", "a b", "+&=;%", "ß\x00\xff", strings.Repeat("é ", 50)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := string(escapeForm(append([]byte("a b&"), text...), 4))
		if want := "a b&" + url.QueryEscape(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	})
}

func TestFormTamperer(t *testing.T) {
	tamper := formTamperer("Seq", "Version")
	tests := []struct{ body, want string }{
		{"Seq=12&Version=2010-04-01", "Seq=13&Version=2010-04-01"},
		{"A=1&Seq=9&B=2", "A=1&Seq=8&B=2"},
		{"MySeq=1&Version=2010-04-01&B=", "MySeq=1&Version=2011-04-01&B="},
		{"Seq=x&Version=1&C=", "Seq=x&Version=2&C="},
		{"A=Seq%3D1&B=2", "A=Seq%3D1&B=2"},
		{"", ""},
	}
	for _, tt := range tests {
		b := []byte(tt.body)
		if tamper(b); string(b) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.body, b, tt.want)
		}
	}
}
