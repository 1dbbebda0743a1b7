package loadgen

import (
	"net/http"
	"net/url"

	"floodproof/reports/ledger"
)

// redirects reports whether the provider follows the answer to another URL, and makes that the job's target.
//
// Note: a redirect that is followed is an attempt of its own in the ledger, because one request on the wire is one attempt, and is counted as refused. A
// receiver that always redirects has no better availability than a half.
func (j *job) redirects(o *outcome) bool {
	p := j.slot.role.Provider
	if !j.provided() || j.hops >= p.Redirects || o.result != ledger.Refused || o.sender == nil {
		return false
	}
	if o.status != http.StatusMovedPermanently && o.status != http.StatusFound {
		return false
	}
	location := o.header.Get("Location")
	to, err := j.url().Parse(location)
	if err != nil || location == "" || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return false // nowhere to go: an answer like any other
	}
	j.target = to
	j.hops++
	j.spent += o.done - o.start
	return true
}

// fallsBack reports whether the provider turns to the receiver's second URL after the last attempt at the first, and makes that the job's target.
func (j *job) fallsBack(o *outcome) bool {
	second := j.slot.role.fallback
	if !j.provided() || j.fallback || second == nil || o.sender == nil {
		return false
	}
	j.fallback, j.target, j.hops, j.spent = true, second, 0, 0
	return true
}

// url is where the next attempt goes.
func (j *job) url() *url.URL {
	if j.target != nil {
		return j.target
	}
	return j.slot.role.template.URL
}

// defers puts a job off that is due in a pause of its provider, and reports whether it did.
func (r *run) defers(j *job) bool {
	resumes := j.slot.role.lane.resumes
	if resumes == 0 || !j.provided() {
		return false
	}
	m := moment{day: resumes}
	// On the wall, because the day's clock is a rounded image of it: nothing may be put off to the instant at which it is due.
	if due, known := r.clock.place(&m); known && due <= max(j.due, r.now()) {
		return false
	}
	j.moment = m
	r.place(j)
	return true
}
