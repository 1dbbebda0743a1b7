package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"floodproof/bench/backends"
	"floodproof/bench/node"
	"floodproof/reference/dashboard"
	"floodproof/reference/queue"
	"floodproof/reference/queue/server"
)

// openServeStore opens the queue of a served pipeline.
func openServeStore(ctx context.Context, cfg *serveConfig) (boardStore, error) {
	opened, err := backends.Open(ctx, cfg.backend, backends.Options{Dir: cfg.dir, Address: cfg.address, Namespace: cfg.namespace, Lease: cfg.lease, Retention: cfg.retention})
	if err != nil {
		return nil, err
	}
	store, ok := opened.(boardStore)
	if !ok {
		err := fmt.Errorf("backend %s cannot list its dead letters, or say what it holds: use another one", cfg.backend)
		_ = opened.Close(context.WithoutCancel(ctx)) // nothing was done with it
		return nil, err
	}
	return store, nil
}

// findServeBackend finds a backend by its name.
func findServeBackend(name string) (backends.Backend, error) {
	all := backends.All()
	i := slices.IndexFunc(all, func(b backends.Backend) bool { return b.Name == name })
	if i < 0 {
		return backends.Backend{}, fmt.Errorf("unknown backend %q: floodproof list backends shows them", name)
	}
	return all[i], nil
}

// readAddress takes the address of the queue's server, in which there may be a password. Where nothing of ours says it, the variable counts that says it to runs.
func (c *serveConfig) readAddress(r *secretReader) {
	c.address = r.either(r.env[node.AddressVariable], c.addressFile, "the queue's address")
	if c.address == "" && c.addressFile == "" {
		c.address = r.env[c.serverVariable()]
	}
}

// server is the kind of server of the backend, if it has one.
func (c *serveConfig) server() (kind server.Kind, ok bool) {
	b, err := findServeBackend(c.backend)
	if err != nil || b.Embedded() {
		return server.Kind{}, false
	}
	return b.Server(func(args ...string) *exec.Cmd { return exec.Command("floodproof", args...) }), true //nolint:noctx // it is not run
}

// serverVariable is the variable in which a run finds the address of the backend's server, "" without one.
func (c *serveConfig) serverVariable() string {
	kind, _ := c.server()
	return kind.Variable
}

// exampleAddress is an address as the backend takes it.
func (c *serveConfig) exampleAddress() string {
	kind, _ := c.server()
	examples := map[string]string{
		"redis": "redis://127.0.0.1:6379", "postgres": "postgres://user:password@127.0.0.1:5432/database", "nats": "nats://127.0.0.1:4222",
		"kafka": "127.0.0.1:9092", "rabbitmq": "amqp://user:password@127.0.0.1:5672/", "sqs": "https://sqs.eu-central-1.amazonaws.com",
	}
	return examples[kind.Name]
}

// checkStore finds what is wrong with where the queue is.
func (c *serveConfig) checkStore() []error {
	_, err := findServeBackend(c.backend)
	kind, remote := c.server()
	switch {
	case err != nil:
		return []error{err}
	case remote && c.address == "":
		text := fmt.Sprintf("%s: backend %s is on a server, whose address is not said: set %s or address-file, or %s", c.from("backend"), c.backend, node.AddressVariable, kind.Variable)
		if example := c.exampleAddress(); example != "" {
			text += "; it looks like " + example
		}
		return []error{errors.New(text)}
	}
	return nil
}

// unopened stands for a queue while the configuration is checked. Nothing may be asked of it.
type unopened struct {
	queue.Queue
	queue.Stepper
	boardQueue
}

// Claims implements backends.Store: whatever is asked for is possible until the queue was asked itself.
func (unopened) Claims() queue.Claims { return queue.Claims{Debounce: true} }

// boardQueue is another name of it, because the fields of a struct need different ones.
type boardQueue = dashboard.Queue
