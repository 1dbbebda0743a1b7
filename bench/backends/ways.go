package backends

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"floodproof/reference/queue/server"
	"floodproof/reference/queue/server/container"
	"floodproof/reference/queue/server/container/wire"
)

const (
	// WayVariable restricts how a backend gets its server to one way: "binary" or "container". A user's own address goes before both.
	WayVariable = "FLOODPROOF_SERVER"
	// ContainerProgram is the helper that runs containers: beside this program, or in the PATH. It is a program of its own so that receivers and workers do not carry
	// Docker's client around.
	ContainerProgram = "floodproof-container"
)

// Way is how a backend gets its server.
type Way struct {
	// Kind is "embedded" (there is none), "address" (the user's own), "built in", "binary", "container", or "" if there is no way on this machine.
	Kind string `json:"kind"`
	// Detail says more: the variable that holds the address, the program and its version, the image.
	Detail string `json:"detail"`
	// Why says why there is no way; it wraps server.ErrMissing unless something is there and broken. Fix is the one command that helps.
	Why error  `json:"-"`
	Fix string `json:"fix,omitempty"`
	// Variable is the environment variable that names a server of the user's own, "" where there is none to name.
	Variable string `json:"-"`
}

func (w Way) String() string { return strings.TrimSpace(w.Kind + " " + w.Detail) }

// Find looks for the way that a run of a backend would take, in the order address, binary, container. self makes commands that run this program again. It starts nothing but programs that
// are asked for their version, and fetches nothing: the image of a container may still have to be.
func (b Backend) Find(ctx context.Context, self func(args ...string) *exec.Cmd) Found {
	if b.Embedded() {
		return Found{b, Way{Kind: "embedded"}}
	}
	kind := b.Server(self)
	w := b.way(ctx, kind, self)
	if w.Variable = kind.Variable; w.Why != nil {
		w.Fix = kind.Install
	}
	return Found{b, w}
}

func (b Backend) way(ctx context.Context, kind server.Kind, self func(args ...string) *exec.Cmd) Way {
	if os.Getenv(kind.Variable) != "" {
		return AddressWay(kind)
	}
	allowed := AllowedWays()
	var failed error
	if allowed["binary"] {
		binary, err := kind.Locate(ctx)
		if err == nil {
			return BinaryWay(binary, self)
		}
		if !errors.Is(err, server.ErrMissing) {
			return Way{Why: fmt.Errorf("%s: %w", kind.Name, err)}
		}
		failed = err
	}
	if allowed["container"] && b.Cluster == nil {
		image, known := container.Find(kind.Name)
		if known {
			_, err := CheckDocker(ctx, self)
			if err == nil {
				return Way{Kind: "container", Detail: image.Reference()}
			}
			failed = cmp.Or(failed, err)
		}
	}
	return Way{Why: cmp.Or(failed, fmt.Errorf("%s: %w", kind.Name, server.ErrMissing))}
}

// AllowedWays are those that the environment allows, all if it says nothing.
func AllowedWays() map[string]bool {
	if only := os.Getenv(WayVariable); only != "" {
		return map[string]bool{only: true}
	}
	return map[string]bool{"binary": true, "container": true}
}

// CheckWays refuses a restriction that nobody can follow.
func CheckWays() error {
	if only := os.Getenv(WayVariable); only != "" && only != "binary" && only != "container" {
		return fmt.Errorf("%s is %q: set it to binary or container", WayVariable, only)
	}
	return nil
}

// AddressWay is a server of the user's own. It does not show the address, which may hold a password.
func AddressWay(kind server.Kind) Way {
	return Way{Kind: "address", Detail: "given in " + kind.Variable}
}

// BinaryWay is a program on this machine, or one that is built in.
func BinaryWay(b server.Binary, self func(args ...string) *exec.Cmd) Way {
	if b.Path == self().Path {
		return Way{Kind: "built in", Detail: b.Version}
	}
	version, _, _ := strings.Cut(b.Version, " sha=") // Redis tells its whole build
	return Way{Kind: "binary", Detail: b.Path + " (" + version + ")"}
}

// FindContainerProgram is the path of [ContainerProgram]; the error wraps server.ErrMissing.
func FindContainerProgram(self func(args ...string) *exec.Cmd) (string, error) {
	name := ContainerProgram
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	for _, candidate := range []string{filepath.Join(filepath.Dir(self().Path), name), name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", noHelper{}
}

// noHelper is a server.ErrMissing too.
type noHelper struct{}

func (noHelper) Error() string {
	return ContainerProgram + " is neither beside floodproof nor in the PATH; make build makes it"
}

func (noHelper) Is(target error) bool { return target == server.ErrMissing }

// CheckDocker asks for the version of the Docker daemon that containers would run on.
func CheckDocker(ctx context.Context, self func(args ...string) *exec.Cmd) (version string, err error) {
	program, err := FindContainerProgram(self)
	if err != nil {
		return "", err
	}
	said, err := exec.CommandContext(ctx, program, "check").Output()
	if err != nil {
		return "", fmt.Errorf("%s check: %w", program, err)
	}
	var a wire.Answer
	if err := json.Unmarshal(said, &a); err != nil {
		return "", fmt.Errorf("%s check: %w", program, err)
	}
	if a.Error != "" {
		reason, _, _ := strings.Cut(a.Error, "\n")
		return "", fmt.Errorf("%w (%s)", container.ErrNoDocker, reason)
	}
	return a.Version, nil
}
