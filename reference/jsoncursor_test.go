package reference

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJSONCursorAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range jsonSeeds() {
		c := jsonCursor{data: []byte(text)}
		c.skip()
		if got, want := c.done(), json.Valid([]byte(text)); got != want {
			t.Errorf("%q: well formed = %v, want %v", text, got, want)
		}
	}
}

func TestJSONCursorRefusesBottomlessNesting(t *testing.T) {
	for _, pair := range []string{"[]", `{"a":}`} {
		open, end := pair[:len(pair)-1], pair[len(pair)-1:]
		for depth, want := range map[int]bool{maxJSONDepth: true, maxJSONDepth + 1: false, 1 << 20: false} {
			c := jsonCursor{data: []byte(strings.Repeat(open, depth-1) + open[:1] + end + strings.Repeat(end, depth-1))}
			c.skip()
			if got := c.done(); got != want {
				t.Errorf("%s nested %d deep: accepted = %v, want %v", pair, depth, got, want)
			}
		}
	}
}

func TestJSONCursorReadsWhatIsAsked(t *testing.T) {
	c := jsonCursor{data: []byte(` { "a" : "x\u00e9\n" , "b":[1,{"c":"d"}], "\u0063":-12, "e": {"f":null}, "g":1.5, "when":1533204620, "then":"2018-08-02T10:10:20Z" } `)}
	got := map[string]any{}
	for key := range c.members {
		switch name := string(key); name {
		case "a":
			got[name] = c.text()
		case "b":
			got[name] = string(c.raw())
		case "c":
			got[name] = string(c.integer())
		case "g":
			got[name] = c.integer() == nil
		case "when", "then":
			got[name] = c.millis()
		}
	}
	if !c.done() {
		t.Fatal("the text was refused")
	}
	want := map[string]any{"a": "xé\n", "b": `[1,{"c":"d"}]`, "c": "-12", "g": true, "when": int64(1533204620000), "then": int64(1533204620000)}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: got %v, want %v", name, got[name], want[name])
		}
	}
}

func TestJSONCursorEndsALoopThatBreaks(t *testing.T) {
	c := jsonCursor{data: []byte(`{"a":1,"b":[1,2,3],"c":2}`)}
	seen := 0
	for range c.members {
		seen++
		break
	}
	if seen != 1 || !c.done() {
		t.Errorf("saw %d members, done %v; want 1 and true: the rest is still checked", seen, c.done())
	}
}

func FuzzJSONCursor(f *testing.F) {
	for _, text := range jsonSeeds() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := jsonCursor{data: data}
		c.skip()
		got, want := c.done(), json.Valid(data)
		tooDeep := want && strings.Count(string(data), "[")+strings.Count(string(data), "{") > maxJSONDepth
		if got != want && !tooDeep {
			t.Errorf("%q: well formed = %v, want %v", data, got, want)
		}
		var any map[string]json.RawMessage
		if !got || json.Unmarshal(data, &any) != nil {
			return
		}
		c = jsonCursor{data: data}
		for key := range c.members {
			name := string(key)
			if raw := c.raw(); !json.Valid(raw) {
				t.Errorf("member %q of %q: %q is not a JSON value", name, data, raw)
			}
		}
	})
}

func jsonSeeds() []string {
	return []string{
		``, ` `, `null`, `nul`, `true`, `false `, `truee`, `0`, `-`, `-0`, `01`, `1.`, `1.5e`, `1e+5`, `1E-5`, `.5`, `+1`, `""`, `"`, `"\`, `"\u12`, `"\u12G4"`, `"\x"`, "\"\n\"", "\"\x7f\xff\"", `"\ud800"`,
		`[]`, `[`, `[1`, `[1,`, `[1,]`, `[,]`, `[1 2]`, `[]]`, `[1]x`, `{}`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `{"a":1}}`, `{"a":{"b":[{"c":[]}]}}`, `{"":""}`, `{"a":1,"a":2}`, "\ufeff{}", ` [ 1 , { "a" : [ ] } ] `,
	}
}

// TestPlainEnd: every byte that means something in a string is found wherever it stands, and none that does not is taken for one.
func TestPlainEnd(t *testing.T) {
	for b := range 256 {
		special := b < ' ' || b == '"' || b == '\\'
		for at := range 24 {
			text := []byte("\x7f\x80\xff plain, and long enough")[:24]
			text[at] = byte(b)
			if got := plainEnd(text, 0); special && got != at || !special && got != len(text) {
				t.Errorf("byte %#x at %d of %d: got %d", b, at, len(text), got)
			}
			if got := plainEnd(text[:7], 0); got != 0 {
				t.Errorf("less than eight bytes are left to whoever asks: got %d", got)
			}
		}
	}
}
