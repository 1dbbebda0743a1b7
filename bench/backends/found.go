package backends

import "strings"

// Found is a backend, and how this machine would run it. Why is nil if it can.
type Found struct {
	Backend Backend
	Way
}

// Embedded reports that the queue has no server: it lives in the receivers and workers.
func (b Backend) Embedded() bool { return b.Server == nil }

// Variant reports that the backend is another form of one: a weaker one, such as sqlite@normal, or one on several nodes.
func (b Backend) Variant() bool { return strings.Contains(b.Name, "@") }
