package tape

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"floodproof/loadgen/provider"
)

// habit is what a provider's own requests show of its headers.
type habit struct {
	// signature are the headers that its rule for signing sets: the signature, and what goes with it. A provider that signs within the body has none.
	signature []string
	// own are those and all others that it sends and not everybody does.
	own []string
}

// habits asks every provider once: some have to make a key for it.
var habits = sync.OnceValue(func() map[string]habit {
	all := map[string]habit{}
	for _, p := range provider.All() {
		all[p.Name] = habitOf(p)
	}
	return all
})

// habitOf lets a provider make a request and sign it.
func habitOf(p *provider.Provider) (h habit) {
	defer func() { _ = recover() }() // a provider that does not work without its events is known by its path alone
	r := provider.Request{Header: http.Header{}}
	p.Sign(&r, provider.Signing{Secrets: []string{anySecret(p)}, Now: time.Unix(0, 0)})
	h.signature = slices.Sorted(maps.Keys(r.Header))
	p.Render(&r, provider.Delivery{Key: 1, Attempt: 1, Malformed: true})
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if !slices.Contains(everybodys, name) {
			h.own = append(h.own, name)
		}
	}
	return h
}

// everybodys are headers that say nothing about who sent them.
var everybodys = []string{"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control", "Connection", "Content-Encoding",
	"Content-Length", "Content-Type", "Date", "Pragma", "Traceparent", "User-Agent", "X-Request-Id"}

// SignatureHeaders are the headers that a provider's rule for signing sets, in their canonical spelling; none for an unknown provider and for one that signs
// within the body.
func SignatureHeaders(name string) []string { return slices.Clone(habits()[name].signature) }

// anySecret is a secret that the provider could have, good for nothing.
func anySecret(p *provider.Provider) string {
	if p.NewSecret == nil {
		return "none"
	}
	return p.NewSecret([32]byte{1})
}

// sign lets the provider sign a request that is not its own work. Its rule may rely on what its own requests have; a recorded one may have been sent by anybody, so
// that a panic there is an error of the request and no end of the program.
func sign(p *provider.Provider, r *provider.Request, with provider.Signing) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("sign as %s: this is no request that %s makes: %v", p.Name, p.Name, e)
		}
	}()
	p.Sign(r, with)
	return nil
}

// resign signs a request again, and reports whether there was a place for a signature: a provider that signs within the body needs one there.
func resign(p *provider.Provider, r *provider.Request, with provider.Signing) (bool, error) {
	headers, body := len(r.Header), bytes.Clone(r.Body)
	if err := sign(p, r, with); err != nil {
		return false, err
	}
	return len(r.Header) > headers || !bytes.Equal(body, r.Body), nil
}
