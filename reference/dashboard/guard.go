package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// guard stands before every page.
type guard struct {
	log *slog.Logger
	// locked: there is a password. Digests are compared because they have one length.
	locked   bool
	password [sha256.Size]byte
	hosts    []string
	crossing *http.CrossOriginProtection
	// key makes the tokens of forms; another process makes others.
	key []byte
}

func newGuard(cfg Config, key []byte) *guard {
	return &guard{
		log: cfg.Logger, locked: cfg.Password != "", password: sha256.Sum256([]byte(cfg.Password)),
		hosts: cfg.Hosts, crossing: http.NewCrossOriginProtection(), key: key,
	}
}

// policy is the content security policy of every answer. Nothing is inline, so no nonce is needed.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// protect lets through who may ask.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		// Note: no-referrer would make browsers send "Origin: null" with our own forms.
		h.Set("Referrer-Policy", "same-origin")
		switch {
		case !g.knownHost(r.Host):
			http.Error(w, "this dashboard is not reached under that name; list it among the dashboard's hosts", http.StatusMisdirectedRequest)
		case !g.admits(r):
			h.Set("WWW-Authenticate", `Basic realm="floodproof", charset="UTF-8"`)
			http.Error(w, "the dashboard's password is needed", http.StatusUnauthorized)
		case !sameOrigin(r) || g.crossing.Check(r) != nil:
			http.Error(w, "the request comes from another page", http.StatusForbidden)
		case r.Method == http.MethodPost && !g.genuine(w, r):
			http.Error(w, "the form is not one of this dashboard, or from before its restart: load the page again", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// knownHost reports whether a Host header is one of ours. An address is always fine: nobody can point it elsewhere. The port says nothing, as a tunnel may change it.
func (g *guard) knownHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return host == "localhost" || net.ParseIP(host) != nil || slices.ContainsFunc(g.hosts, func(known string) bool { return strings.EqualFold(known, host) })
}

// admits asks for the password.
func (g *guard) admits(r *http.Request) bool {
	if !g.locked {
		return true
	}
	_, password, ok := r.BasicAuth()
	digest := sha256.Sum256([]byte(password))
	if subtle.ConstantTimeCompare(digest[:], g.password[:]) == 1 && ok {
		return true
	}
	if ok {
		g.log.WarnContext(r.Context(), "wrong password for the dashboard", "remote", r.RemoteAddr)
	}
	return false
}

// sameOrigin reports whether a request that names its origin comes from a page under the same host. Browsers name it in all requests that act, and in those of scripts of other pages.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// The token of a form is made from a cookie with a key that only this process has, and stands only in our pages, which pages of others cannot read: whoever makes a browser
// send a form sends the cookie along, but does not know the token.
const (
	tokenCookie = "floodproof_form"
	tokenField  = "token"
	maxForm     = 64 << 10
)

// token is that of the forms of a page, and sets the cookie that it belongs to.
func (g *guard) token(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(tokenCookie); err == nil && len(c.Value) == tokenLength {
		return g.tokenOf(c.Value)
	}
	value := rand.Text()
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: value, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
	return g.tokenOf(value)
}

// tokenLength is that of rand.Text: 128 bits in base32.
const tokenLength = 26

func (g *guard) tokenOf(cookie string) string {
	mac := hmac.New(sha256.New, g.key)
	_, _ = mac.Write([]byte(cookie)) // A hash never returns an error.
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// genuine reports whether a form is one of ours.
func (g *guard) genuine(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	c, err := r.Cookie(tokenCookie)
	if err != nil || r.ParseForm() != nil {
		return false
	}
	return hmac.Equal([]byte(r.PostForm.Get(tokenField)), []byte(g.tokenOf(c.Value)))
}
