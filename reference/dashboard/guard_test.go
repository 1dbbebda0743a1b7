package dashboard_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"floodproof/reference/dashboard"
)

const password = "correct horse battery"

func TestPassword(t *testing.T) {
	var log bytes.Buffer
	d := newDashboard(t, dashboard.Config{Queue: newStore(), Password: password, Logger: slog.New(slog.NewJSONHandler(&log, nil)), Metrics: http.NotFoundHandler()})
	for _, tt := range []struct {
		name     string
		auth     func(*http.Request)
		want     int
		password string
	}{
		{"none", func(*http.Request) {}, http.StatusUnauthorized, ""},
		{"wrong", func(r *http.Request) { r.SetBasicAuth("me", "wrong horse battery") }, http.StatusUnauthorized, "wrong horse battery"},
		{"a part", func(r *http.Request) { r.SetBasicAuth("me", password[:5]) }, http.StatusUnauthorized, ""},
		{"empty", func(r *http.Request) { r.SetBasicAuth("me", "") }, http.StatusUnauthorized, ""},
		{"as the user", func(r *http.Request) { r.SetBasicAuth(password, "") }, http.StatusUnauthorized, ""},
		{"another scheme", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+password) }, http.StatusUnauthorized, ""},
		{"right", func(r *http.Request) { r.SetBasicAuth("", password) }, http.StatusOK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &visitor{t: t, handler: d, change: tt.auth}
			for _, target := range []string{"/", "/letters", "/event", "/style.css", "/live.js"} {
				resp := v.do(http.MethodGet, target, nil)
				if resp.StatusCode != tt.want {
					t.Errorf("GET %s: got status %d, want %d", target, resp.StatusCode, tt.want)
				}
				if asked := resp.Header.Get("WWW-Authenticate") != ""; asked != (tt.want == http.StatusUnauthorized) {
					t.Errorf("GET %s: asked for the password: got %v", target, asked)
				}
			}
			if got := v.do(http.MethodGet, "/metrics", nil).StatusCode; tt.want == http.StatusUnauthorized && got != tt.want {
				t.Errorf("GET /metrics: got status %d, want %d", got, tt.want)
			}
		})
	}
	if text := log.String(); !strings.Contains(text, "wrong password") || strings.Contains(text, "horse") {
		t.Errorf("log: got %s, want that passwords were wrong, and none of them", text)
	}
}

func TestHosts(t *testing.T) {
	d := newDashboard(t, dashboard.Config{Queue: newStore(), Hosts: []string{"hooks.example.com"}})
	for host, want := range map[string]int{
		"127.0.0.1:8081":             http.StatusOK,
		"localhost:9999":             http.StatusOK,
		"[::1]:8081":                 http.StatusOK,
		"10.1.2.3":                   http.StatusOK,
		"Hooks.Example.com":          http.StatusOK,
		"hooks.example.com:443":      http.StatusOK,
		"evil.example":               http.StatusMisdirectedRequest,
		"evil.example:8081":          http.StatusMisdirectedRequest,
		"hooks.example.com.evil.com": http.StatusMisdirectedRequest,
		"127.0.0.1.nip.io":           http.StatusMisdirectedRequest,
		"localhost.evil.example":     http.StatusMisdirectedRequest,
		"":                           http.StatusMisdirectedRequest,
	} {
		v := &visitor{t: t, handler: d, change: func(r *http.Request) { r.Host = host }}
		if got := v.do(http.MethodGet, "/", nil).StatusCode; got != want {
			t.Errorf("Host %q: got status %d, want %d", host, got, want)
		}
	}
}

// TestForms sends the form that gives a dead letter back as a page of ours does, and in each way that it must not be taken.
func TestForms(t *testing.T) {
	for _, tt := range []struct {
		name   string
		form   func(url.Values)
		change func(*http.Request)
		want   int
	}{
		{"as it is", nil, nil, http.StatusSeeOther},
		{"no origin, an older browser", nil, func(r *http.Request) { r.Header.Del("Origin"); r.Header.Del("Sec-Fetch-Site") }, http.StatusSeeOther},
		{"no token", func(f url.Values) { f.Del("token") }, nil, http.StatusForbidden},
		{"another token", func(f url.Values) { f.Set("token", strings.Repeat("A", 43)) }, nil, http.StatusForbidden},
		{"no cookie", nil, func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusForbidden},
		{"another cookie", nil, func(r *http.Request) { r.Header.Set("Cookie", "floodproof_form=ABCDEFGHIJKLMNOPQRSTUVWXYZ") }, http.StatusForbidden},
		{"another origin", nil, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, http.StatusForbidden},
		{"another port of this machine", nil, func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:3000") }, http.StatusForbidden},
		{"a hidden origin", nil, func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		{"another site, says the browser", nil, func(r *http.Request) { r.Header.Del("Origin"); r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		{"another host", nil, func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		{"too long", func(f url.Values) { f.Set("x", strings.Repeat("x", 100<<10)) }, nil, http.StatusForbidden},
		{"a link", nil, func(r *http.Request) { r.Method = http.MethodGet }, http.StatusNotFound},
		{"a link with another verb", nil, func(r *http.Request) { r.Method = http.MethodDelete }, http.StatusNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore()
			v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: s})}
			form := url.Values{"token": {tokenIn(t, v.page("/letters"))}, "all": {"yes"}}
			if tt.form != nil {
				tt.form(form)
			}
			v.change = tt.change
			if got := v.do(http.MethodPost, "/letters/retry", form).StatusCode; got != tt.want {
				t.Errorf("POST: got status %d, want %d", got, tt.want)
			}
			if acted := len(s.redriven()) > 0; acted != (tt.want == http.StatusSeeOther) {
				t.Errorf("dead letters were given back: got %v", s.redriven())
			}
		})
	}
}

// TestTokenOfAnotherProcess: a page from before a restart cannot act.
func TestTokenOfAnotherProcess(t *testing.T) {
	s := newStore()
	v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: s})}
	form := url.Values{"token": {tokenIn(t, v.page("/letters"))}, "all": {"yes"}}
	v.handler = newDashboard(t, dashboard.Config{Queue: s})
	resp := v.do(http.MethodPost, "/letters/retry", form)
	if text := read(t, resp); resp.StatusCode != http.StatusForbidden || !strings.Contains(text, "load the page again") {
		t.Errorf("POST: got status %d and %q, want 403 and what to do", resp.StatusCode, text)
	}
}

func TestHeaders(t *testing.T) {
	v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: newStore()})}
	for _, target := range []string{"/", "/letters", "/event", "/nowhere", "/style.css"} {
		h := v.do(http.MethodGet, target, nil).Header
		policy := h.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("GET %s: policy %q", target, policy)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("GET %s: headers %v: want no-store and nosniff", target, h)
		}
	}
	for _, c := range v.cookies {
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
			t.Errorf("cookie %v: want it strict and out of reach of scripts", c)
		}
	}
	if len(v.cookies) != 1 {
		t.Errorf("got %d cookies, want one for all pages", len(v.cookies))
	}
}

func TestCheckAddress(t *testing.T) {
	for _, tt := range []struct {
		addr          string
		without, with bool
	}{
		{"127.0.0.1:8081", true, true},
		{"127.8.8.8:1", true, true},
		{"[::1]:8081", true, true},
		{"localhost:8081", true, true},
		{"0.0.0.0:8081", false, true},
		{"[::]:8081", false, true},
		{":8081", false, true},
		{"192.168.1.2:8081", false, true},
		{"example.com:8081", false, true},
		{"8081", false, false},
	} {
		if err := dashboard.CheckAddress(tt.addr, false); (err == nil) != tt.without {
			t.Errorf("%s without a password: got %v", tt.addr, err)
		}
		if err := dashboard.CheckAddress(tt.addr, true); (err == nil) != tt.with {
			t.Errorf("%s with a password: got %v", tt.addr, err)
		}
	}
}

func TestRefusesConfig(t *testing.T) {
	_, err := dashboard.New(dashboard.Config{Password: "short", Interval: -1})
	if err == nil {
		t.Fatal("New: got no error")
	}
	for _, want := range []string{"set Queue", "the password has 5 bytes", "the interval is -1ns"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("New: got %v, want also %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "short") {
		t.Errorf("New: the error %v repeats the password", err)
	}
}
