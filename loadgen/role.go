package loadgen

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/bits"
	"net/http"
	"net/url"
	"slices"
	"time"

	"floodproof/loadgen/provider"
)

// role is one provider's part in the day, with what is counted for it.
type role struct {
	Share
	index uint8
	// template is a request with method and parsed URL, copied for every attempt.
	template *http.Request
	// fallback is the second URL, nil if the receiver has none.
	fallback *url.URL
	// below is the sum of the slot weights up to and including this role, as a share of all.
	below float64
	// upTo is the sum of the event weights up to and including this role, as a share of all.
	upTo float64
	// forgeries are the flaws that this provider's rule refuses; expires: it refuses old signatures too; foresees: and those from the future.
	forgeries         []flaw
	expires, foresees bool
	// wrong is a secret that is none of Secrets but looks like the first.
	wrong string
	// oversized is the length of an oversized body.
	oversized int
	lane      lane
	// allowances are those of the provider's customers, if it has a quota.
	allowances map[uint64]*allowance
	// block is the first resource of the current block, taken how many of the block's events were given out.
	block, taken uint32
}

// newCast makes the roles of a mix. A provider that sends batches takes several events at a time; its slots are rarer by that factor, so that the
// weights hold by events.
func newCast(mix []Share, day time.Time) ([]*role, error) {
	var sum, weights float64
	cast := make([]*role, len(mix))
	for i, share := range mix {
		template, err := http.NewRequestWithContext(context.Background(), http.MethodPost, share.URL, nil) // each attempt is sent under a context of its own
		if err != nil {
			return nil, fmt.Errorf("parse URL of %s: %w", share.Provider.Name, err)
		}
		var fallback *url.URL
		if share.Fallback != "" {
			if fallback, err = url.Parse(share.Fallback); err != nil {
				return nil, fmt.Errorf("parse the fallback URL of %s: %w", share.Provider.Name, err)
			}
		}
		sum += share.Weight / max(1, share.Provider.MeanBatch)
		weights += share.Weight
		cast[i] = &role{Share: share, index: uint8(i), template: template, fallback: fallback, below: sum, upTo: weights}
		cast[i].probe(day)
	}
	for _, r := range cast {
		r.below /= sum
		r.upTo /= weights
	}
	return cast, nil
}

// batch draws how many events one of the provider's requests carries.
func (r *role) batch(bits uint64) int {
	p := r.Provider
	if p.MaxBatch <= 1 || p.BatchSize == nil {
		return 1
	}
	return min(max(1, p.BatchSize(bits)), p.MaxBatch)
}

// probe finds out which forgeries the provider's rule refuses, by trying: a signature that covers no body makes an altered body genuine, one
// without a time stamp cannot expire, and without any signature there is nothing to forge.
func (r *role) probe(day time.Time) {
	r.wrong = wrongSecret(r.Secrets)
	if newSecret := r.Provider.NewSecret; newSecret != nil {
		r.wrong = newSecret(sha256.Sum256([]byte(r.Secrets[0])))
	}
	event := provider.Event{Key: 1, Draw: 1, ResourceKey: 1, ResourceDraw: 1, Version: 1, At: day}
	pl := plan{slot: &slot{role: r, events: []provider.Event{event}}, key: 1}
	now := day.Add(time.Hour)
	write := func(f flaw) provider.Request {
		req := provider.Request{Header: make(http.Header)}
		pl.flaw = f
		pl.write(&req, 1, provider.Answer{}, now)
		return req
	}
	genuine := write(flawless)
	for _, f := range []flaw{wrongKey, unsigned} {
		if !equal(genuine, write(f)) {
			r.forgeries = append(r.forgeries, f)
		}
	}
	if r.Provider.Tamper != nil && !equal(write(altered), write(alteredBefore)) {
		r.forgeries = append(r.forgeries, altered)
	}
	r.expires = r.Provider.Tolerance > 0 && !equal(genuine, write(expired))
	r.foresees = r.Provider.FutureTolerance > 0 && !equal(genuine, write(future))
}

// equal reports whether two requests are the same bytes.
func equal(a, b provider.Request) bool {
	return bytes.Equal(a.Body, b.Body) && maps.EqualFunc(a.Header, b.Header, slices.Equal)
}

// wrongSecret returns a secret that is not among the given ones and has the form of the first (a prefix, hexadecimal, base64): two of its later characters
// change places. The last two stay, because in base64 not every character may stand there.
func wrongSecret(secrets []string) string {
	right := []byte(secrets[0])
	for i := len(right) - 3; i > 0; i-- {
		for j := i - 1; j >= len(right)/2; j-- {
			wrong := slices.Clone(right)
			wrong[i], wrong[j] = wrong[j], wrong[i]
			if !slices.Contains(secrets, string(wrong)) {
				return string(wrong)
			}
		}
	}
	wrong := "wrong-" + secrets[0]
	for slices.Contains(secrets, wrong) {
		wrong += "-"
	}
	return wrong
}

// blockEvents is about how many consecutive events of a provider share a set of resources.
const blockEvents = 256

// resource gives the provider's next event its resource and version. A block of events belongs to a set of resources, each of which gets all of
// its versions in it: version 1 of all, in a drawn order, then version 2 of all in another order, and so on. So versions of one resource are close, never
// adjacent by rule, and never far.
func (r *role) resource(d dice, versions uint32, allot func(n uint32) uint32) (resource, version uint32) {
	width := uint32(1)
	if n := blockEvents / versions; n > 1 {
		width = 1 << (bits.Len32(n) - 1) // a power of two, so that an odd factor permutes
	}
	if r.taken%(width*versions) == 0 {
		r.block, r.taken = allot(width), 0
	}
	round, i := r.taken/width, r.taken%width
	r.taken++
	order := d.bits(forVersions, uint64(r.block)<<32|uint64(round))
	i = (i*(uint32(order)|1) + uint32(order>>32)) % width
	return r.block + i, round + 1
}
