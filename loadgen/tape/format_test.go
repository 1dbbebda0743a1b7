package tape

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	goodHeader = `{"format":1,"kind":"floodproof-recording","scrubbed":true,"started_at":"2026-11-27T09:00:00Z","version":"v1"}` + "\n"
	goodLine   = `{"at":"2026-11-27T09:00:01.5Z","offset_ms":1500.25,"provider":"stripe","method":"POST","path":"/a?b","headers":[["A","b"]],"body":"x","status":200,"duration_ms":3}` + "\n"
)

// memory is a recording in memory.
type memory struct{ bytes.Buffer }

func (*memory) Close() error { return nil }

func TestRoundTrip(t *testing.T) {
	at := time.Date(2026, 11, 27, 9, 0, 0, 123456789, time.UTC)
	requests := []Request{
		{At: at, Offset: 1234567 * time.Microsecond, Provider: "stripe", Method: "POST", Path: "/webhooks/stripe?a=b", Headers: []Field{{"A", "1"}, {"A", "2"}, {"B", "caf\xe9 <&>"}},
			Redacted: []string{"Stripe-Signature"}, Body: Body{Bytes: []byte("{\"a\": \"\u2028<>&\x01\"}\n")}, Status: 200, Duration: 1500 * time.Microsecond},
		{At: at, Method: "GET", Path: "/", Headers: []Field{}},
		{At: at, Method: "PUT", Path: "//x", Headers: []Field{}, Body: Body{Bytes: []byte("\xff\x00\xfe")}, Status: 502, Unreachable: true},
		{At: at, Method: "PUT", Path: "/y", Headers: []Field{}, Body: Body{LeftOut: true, Length: 0, SHA256: strings.Repeat("0", 64)}},
	}
	var out memory
	w, err := NewWriter(&out, Header{Scrubbed: true, StartedAt: at, Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if w.Size() != int64(out.Len()) {
		t.Errorf("size %d, want %d", w.Size(), out.Len())
	}
	r, err := NewReader(&out.Buffer)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Header{Format: 1, Kind: Kind, Scrubbed: true, StartedAt: at, Version: "v1"}, r.Header()); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	for i, want := range requests {
		got, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request %d (-want +got):\n%s", i, diff)
		}
		if r.Line() != i+2 {
			t.Errorf("line %d, want %d", r.Line(), i+2)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestReaderRefuses(t *testing.T) {
	change := func(old, new string) string { return goodHeader + strings.Replace(goodLine, old, new, 1) }
	tests := []struct{ text, want string }{
		{"", "line 1: empty"},
		{"hello\n", "line 1: not a recording"},
		{`{"format":1,"kind":"ledger"}` + "\n", `line 1: not a recording: its kind is "ledger"`},
		{`{"format":2,"kind":"floodproof-recording","more":1}` + "\n", "line 1: the recording has format 2 and this floodproof reads up to 1; use a newer floodproof"},
		{`{"format":0,"kind":"floodproof-recording"}` + "\n", "line 1: format 0 does not exist"},
		{`{"format":1,"kind":"floodproof-recording","more":1}` + "\n", `line 1: json: unknown field "more"`},
		{strings.TrimSuffix(goodHeader, "\n"), "line 1: cut short"},
		{goodHeader + goodLine + goodLine[:40], "line 3: cut short: the recorder was killed while it wrote; remove this line"},
		{goodHeader + goodLine + "\n", "line 3: an empty line"},
		{goodHeader + "[]\n", "line 2: json: cannot unmarshal array"},
		{change(`"status":200`, `"status":200,"x":1`), `line 2: json: unknown field "x"`},
		{change(`"duration_ms":3}`, `"duration_ms":3} {}`), "line 2: more than one JSON value"},
		{change(`"status":200,`, ``), "line 2: at, offset_ms, headers, status and duration_ms have to be there"},
		{change(`1500.25`, `-1`), "line 2: offset_ms and duration_ms have to be from 0 to a year"},
		{change(`1500.25`, `1e99`), "line 2: offset_ms and duration_ms have to be from 0 to a year"},
		{change(`POST`, `PO ST`), `line 2: method "PO ST" is none`},
		{change(`/a?b`, `a`), `line 2: path "a" does not begin with /`},
		{change(`/a?b`, `/a b`), `line 2: path "/a b"`},
		{change(`"body":"x",`, ``), "line 2: exactly one of body, body_base64 and body_bytes"},
		{change(`"body":"x"`, `"body":"x","body_base64":"eA=="`), "line 2: exactly one of body, body_base64 and body_bytes"},
		{change(`"body":"x"`, `"body_base64":"e"`), "line 2: illegal base64"},
		{change(`"body":"x"`, `"body_bytes":3`), "line 2: a body that was left out has body_bytes and body_sha256"},
		{change(`200`, `1000`), "line 2: status 1000 is none"},
		{change(`["A","b"]`, `["A b","b"]`), `line 2: header "A b" cannot be sent`},
		{change(`["A","b"]`, `["A","b\r\nC: d"]`), `line 2: header "A" cannot be sent`},
		{change(`["A","b"]`, `["A"]`), "line 2: a header is"},
		{change(`["A","b"]`, `["A","?","base64"]`), `line 2: header "A": illegal base64`},
		{change(`"b"`, "\"\xff\""), "line 2: not UTF-8"},
	}
	for _, tt := range tests {
		if err := readAll(strings.NewReader(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("reading %q: %v, want %s", tt.text, err, tt.want)
		}
	}
	if err := readAll(strings.NewReader(goodHeader + goodLine + goodLine)); err != nil {
		t.Errorf("a good recording: %v", err)
	}
}

// readAll reads a recording to its end.
func readAll(in io.Reader) error {
	r, err := NewReader(in)
	for err == nil {
		_, err = r.Next()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestReaderBoundsALine(t *testing.T) {
	_, err := NewReader(endless{})
	if err == nil || !strings.Contains(err.Error(), "line 1: longer than") {
		t.Errorf("error %v, want that the line is too long", err)
	}
}

func TestOpenOrdersByArrival(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	line := func(offset string) string { return strings.Replace(goodLine, "1500.25", offset, 1) }
	if err := os.WriteFile(path, []byte(goodHeader+line("30")+line("10")+line("20")+line("10.5")), 0o600); err != nil {
		t.Fatal(err)
	}
	checked := 0
	rec, err := Open(path, func(Request) error { checked++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var got []time.Duration
	for i := range rec.Len() {
		r, err := rec.Load(i)
		if err != nil || r.Offset != rec.Offset(i) {
			t.Fatalf("request %d: offset %v in the index and %v in the file, error %v", i, rec.Offset(i), r.Offset, err)
		}
		got = append(got, r.Offset)
	}
	want := []time.Duration{10 * time.Millisecond, 10500 * time.Microsecond, 20 * time.Millisecond, 30 * time.Millisecond}
	if diff := cmp.Diff(want, got); diff != "" || checked != 4 {
		t.Errorf("%d checked, offsets (-want +got):\n%s", checked, diff)
	}
	if _, err := Open(path, func(r Request) error {
		if r.Offset == 20*time.Millisecond {
			return errors.New("no")
		}
		return nil
	}); err == nil || !strings.Contains(err.Error(), "line 4: no") {
		t.Errorf("error of a check: %v, want that of line 4", err)
	}
	if _, err := Open(path+"x", nil); err == nil {
		t.Error("opened what does not exist")
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(goodHeader + goodLine))
	f.Add([]byte(goodHeader + strings.Replace(goodLine, `"body":"x"`, `"body_base64":"/wA="`, 1)))
	f.Add([]byte(goodHeader + strings.Replace(goodLine, `["A","b"]`, `["A","/w==","base64"]`, 1)))
	f.Add([]byte(goodHeader + strings.Replace(goodLine, `"body":"x"`, `"body_bytes":3,"body_sha256":"`+strings.Repeat("a", 64)+`"`, 1)))
	f.Add([]byte(goodHeader + "{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := NewReader(bytes.NewReader(text))
		for err == nil {
			var req Request
			if req, err = r.Next(); err != nil {
				break
			}
			// What can be read can be written, and is the same when it is read again.
			again, err := req.encode()
			if err != nil {
				t.Fatalf("write %+v: %v", req, err)
			}
			second, err := decode(again)
			if err != nil {
				t.Fatalf("read %s again: %v", again, err)
			}
			if !cmp.Equal(req, second) {
				t.Fatalf("read\n%+v\nand again\n%+v", req, second)
			}
		}
	})
}
