package queuetest

import "testing"

// Recorded runs f with a testing.TB that keeps its failures instead of failing t, and returns them.
func Recorded(t *testing.T, f func(testing.TB)) []string {
	t.Helper()
	r := &recorder{TB: t}
	r.do(func() { f(r) })
	r.cleanUp()
	return r.failures
}
