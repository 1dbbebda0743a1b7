package container

import (
	"os"
	"strings"

	"floodproof/reference/queue/server/container/wire"
)

// Label is the label of every container that this package makes; its value is [Config].Run.
const Label = "floodproof.run"

// Image is how one broker runs in a container.
type Image struct {
	// Name is the broker's, as its server.Kind has it: "redis".
	Name string
	// Pinned is the image that its settings here were written for. A new release must not change what a benchmark measures.
	Pinned string

	recipe func(place) (recipe, error)
}

// Variable is the environment variable that replaces the image: FLOODPROOF_IMAGE_REDIS. The replacement must understand the same command line and environment,
// as another version of the same image, a mirror's copy of it, or valkey for redis does.
func (i Image) Variable() string {
	return "FLOODPROOF_IMAGE_" + strings.ToUpper(strings.ReplaceAll(i.Name, "-", "_"))
}

// Reference is the image that is run: the user's, or the pinned one.
func (i Image) Reference() string {
	if v := os.Getenv(i.Variable()); v != "" {
		return v
	}
	return i.Pinned
}

// Images are the brokers that can be run in a container.
func Images() []Image {
	return []Image{
		{Name: "redis", Pinned: "redis:7.4.1", recipe: redis},
		{Name: "postgres", Pinned: "postgres:16.6", recipe: postgres},
		{Name: "rabbitmq", Pinned: "rabbitmq:4.0.5", recipe: rabbitMQ},
		{Name: "nats", Pinned: "nats:2.12.2", recipe: nats},
		{Name: "kafka", Pinned: "apache/kafka:4.1.0", recipe: kafka},
	}
}

// Find is the image of a broker.
func Find(name string) (Image, bool) {
	for _, i := range Images() {
		if i.Name == name {
			return i, true
		}
	}
	return Image{}, false
}

// place is where a broker will be, which decides what it is told.
type place struct {
	// network is wire.Bridge or wire.Host.
	network string
	// port is for clients. more are two other free ports, for what listens besides.
	port int
	more [2]int
	// password is a fresh one.
	password string
	// settings replace defaults, by the broker's own names.
	settings map[string]string
}

// listen is the address that it binds. With a bridge it is alone there, and the daemon publishes the port on the loopback; on the machine's own network nobody else
// may reach it.
func (p place) listen() string {
	if p.network == wire.Bridge {
		return "0.0.0.0"
	}
	return "127.0.0.1"
}

// merged are the defaults with the settings over them.
func (p place) merged(defaults map[string]string) map[string]string {
	for name, value := range p.settings {
		defaults[name] = value
	}
	return defaults
}

// recipe is what one container is told, and what its clients are.
type recipe struct {
	command    []string
	env, files map[string]string
	data       string
	address    string
}
