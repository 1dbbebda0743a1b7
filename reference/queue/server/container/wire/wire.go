// Package wire is what a program says to the helper that runs a container for it: one JSON object a line, an order on the helper's standard input, its answer on
// the standard output.
//
// The helper lives as long as its container is wanted: when its standard input ends, whoever started it has no use for the container any more, or is dead, and
// the helper removes it.
package wire

import "time"

// The verbs of an [Order].
const (
	// Hello asks what the Docker daemon is. The answer has Version and Network.
	Hello = "hello"
	// Create fetches the image if it is missing, and makes and starts the container. It comes once.
	Create = "create"
	// Start starts the container again on the same data, Kill ends every process in it with SIGKILL. Each does nothing where nothing is to be done.
	Start = "start"
	Kill  = "kill"
	// Terminate asks the broker to end and waits until it has.
	Terminate = "terminate"
	// Pause freezes every process where it stands, Resume lets them go on. Resuming what is not paused does nothing.
	Pause  = "pause"
	Resume = "resume"
	// State asks whether the container runs (or is paused); the answer has Running, and in Text how it ended.
	State = "state"
	// Logs asks for the last lines that it printed, as Text.
	Logs = "logs"
	// Remove ends the container and removes it with its data. The end of the standard input does that too.
	Remove = "remove"
)

// The networks of a container.
const (
	// Bridge: the container has an address of its own, and its port is published on the loopback.
	Bridge = "bridge"
	// Host: the daemon has no bridge, and the container uses the machine's own network.
	Host = "host"
)

// Order is one thing to do. The helper does one after the other.
type Order struct {
	// N is the order's number, which the answer repeats.
	N    int    `json:"n"`
	Verb string `json:"verb"`
	// Within is how long it may take, 0 for as long as it takes.
	Within time.Duration `json:"within_ns,omitempty"`
	// Container says what to create.
	Container *Container `json:"container,omitempty"`
}

// Container is what to run.
type Container struct {
	// Image is a reference with a tag or a digest: "redis:7.4.1".
	Image string `json:"image"`
	// Command is what follows the image's entry point.
	Command []string `json:"command,omitempty"`
	// Env is its environment beside the image's, and Files what is written into it before it starts, text by path.
	Env   map[string]string `json:"env,omitempty"`
	Files map[string]string `json:"files,omitempty"`
	// Port is what it listens on, inside and outside.
	Port int `json:"port"`
	// Network is the helper's answer to Hello.
	Network string `json:"network"`
	// Data is the directory inside that holds its data: an anonymous volume, which goes with the container, or the directory Dir of the daemon's machine.
	Data string `json:"data"`
	Dir  string `json:"dir,omitempty"`
	// Labels mark it, so that it is found if everybody who knew its id is dead.
	Labels map[string]string `json:"labels"`
	// Log is the file that gets what it printed, when it is removed; "" for none.
	Log string `json:"log,omitempty"`
}

// Answer is what came of an order.
type Answer struct {
	N int `json:"n"`
	// Error says what went wrong, "" for nothing.
	Error string `json:"error,omitempty"`
	// NoDocker: no daemon answers.
	NoDocker bool   `json:"no_docker,omitempty"`
	Version  string `json:"version,omitempty"`
	Network  string `json:"network,omitempty"`
	Running  bool   `json:"running,omitempty"`
	Text     string `json:"text,omitempty"`
}
