// Package backends are the queues that the reference pipeline can run on: how each is opened, what server it needs, and what of that this machine has.
package backends
