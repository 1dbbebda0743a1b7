package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	brokers "floodproof/reference/queue/server/container"
	"floodproof/reference/queue/server/container/wire"
)

var errNoDocker = errors.New("docker does not answer")

// keptLog is how much of a container's output is kept.
const keptLog = 16 << 20

// engine is the one container of a helper. The zero value has not asked for the daemon yet. It is used by one goroutine.
type engine struct {
	provider *testcontainers.DockerProvider
	api      client.APIClient
	ctr      testcontainers.Container
	log      string
}

// do carries one order out.
func (e *engine) do(ctx context.Context, o wire.Order) (wire.Answer, error) {
	if err := e.connect(); err != nil {
		return wire.Answer{}, err
	}
	if o.Within > 0 {
		bounded, cancel := context.WithTimeout(ctx, o.Within)
		defer cancel()
		ctx = bounded
	}
	switch o.Verb {
	case wire.Hello:
		return e.hello(ctx)
	case wire.Create:
		return wire.Answer{}, e.create(ctx, o.Container)
	case wire.Remove:
		return wire.Answer{}, e.remove(ctx)
	}
	if e.ctr == nil {
		return wire.Answer{}, errors.New("there is no container")
	}
	switch o.Verb {
	case wire.Start:
		return wire.Answer{}, e.ctr.Start(ctx)
	case wire.Kill:
		return wire.Answer{}, e.end(ctx, "SIGKILL")
	case wire.Terminate:
		return wire.Answer{}, e.terminate(ctx)
	case wire.Pause, wire.Resume:
		return wire.Answer{}, e.freeze(ctx, o.Verb == wire.Pause)
	case wire.State:
		return e.state(ctx)
	case wire.Logs:
		var text strings.Builder
		err := e.logs(ctx, &text, "40")
		return wire.Answer{Text: text.String()}, err
	}
	return wire.Answer{}, fmt.Errorf("unknown order %q", o.Verb)
}

// connect finds the daemon as testcontainers-go does: DOCKER_HOST, the current context of the docker command, the usual sockets.
func (e *engine) connect() (err error) {
	if e.provider != nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil { // it panics where there is no socket
			err = fmt.Errorf("%w: %v", errNoDocker, p)
		}
	}()
	quiet := testcontainers.GenericProviderOptionFunc(func(o *testcontainers.GenericProviderOptions) { o.Logger = log.NewNoopLogger() })
	log.SetDefault(log.NewNoopLogger())
	// The network "host" is always there, and asking for it keeps testcontainers-go from making a bridge where the daemon has none; create chooses the network itself.
	p, err := testcontainers.NewDockerProvider(append(testcontainers.Generic2DockerOptions(quiet), testcontainers.WithDefaultBridgeNetwork(wire.Host))...)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoDocker, err)
	}
	e.provider, e.api = p, p.Client()
	return nil
}

// hello tells what daemon this is. One on another machine is refused: what it publishes on its loopback cannot be reached, and a broker without a password must not
// be published anywhere else.
func (e *engine) hello(ctx context.Context) (wire.Answer, error) {
	if host := e.daemon(); !strings.HasPrefix(host, "unix://") && !strings.HasPrefix(host, "npipe://") {
		return wire.Answer{}, fmt.Errorf("%w on this machine: the daemon is at %s", errNoDocker, host)
	}
	version, err := e.api.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return wire.Answer{}, fmt.Errorf("%w: %w", errNoDocker, err)
	}
	a := wire.Answer{Version: version.Version, Network: wire.Bridge}
	if _, err := e.api.NetworkInspect(ctx, wire.Bridge, client.NetworkInspectOptions{}); errdefs.IsNotFound(err) {
		a.Network = wire.Host
	} else if err != nil {
		return wire.Answer{}, fmt.Errorf("ask for the networks: %w", err)
	}
	return a, nil
}

func (e *engine) daemon() string {
	if c, ok := e.api.(interface{ DaemonHost() string }); ok {
		return c.DaemonHost()
	}
	return ""
}

// create makes the container and starts it.
func (e *engine) create(ctx context.Context, c *wire.Container) error {
	if c == nil || e.ctr != nil {
		return errors.New("one container is made, and once")
	}
	port, err := network.ParsePort(strconv.Itoa(c.Port) + "/tcp")
	if err != nil {
		return err
	}
	request := testcontainers.ContainerRequest{
		Image: c.Image, Cmd: c.Command, Env: c.Env, Labels: maps.Clone(c.Labels), ExposedPorts: []string{port.String()},
		HostConfigModifier: func(h *container.HostConfig) {
			h.Mounts = []mount.Mount{dataOf(c)}
			h.NetworkMode = container.NetworkMode(c.Network)
			if c.Network != wire.Host {
				h.PortBindings = network.PortMap{port: {{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), HostPort: strconv.Itoa(c.Port)}}}
			}
		},
	}
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		request.Files = append(request.Files, testcontainers.ContainerFile{Reader: strings.NewReader(c.Files[path]), ContainerFilePath: path, FileMode: 0o644})
	}
	e.log = c.Log
	ctr, err := e.provider.CreateContainer(ctx, request)
	if ctr != nil {
		e.ctr = ctr // to be removed, even if it is half made
	}
	if err != nil {
		return fmt.Errorf("make a container of %s: %w", c.Image, err)
	}
	return e.ctr.Start(ctx)
}

// dataOf is where the data are: an anonymous volume, which is removed with the container, or a directory of the machine.
func dataOf(c *wire.Container) mount.Mount {
	if c.Dir != "" {
		return mount.Mount{Type: mount.TypeBind, Source: c.Dir, Target: c.Data}
	}
	return mount.Mount{Type: mount.TypeVolume, Target: c.Data}
}

// end sends a signal and returns when the container's processes are gone.
func (e *engine) end(ctx context.Context, signal string) error {
	id := e.ctr.GetContainerID()
	if _, err := e.api.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: signal}); err != nil {
		if now, asked := e.state(ctx); asked == nil && !now.Running {
			return nil
		}
		return fmt.Errorf("send %s to the container: %w", signal, err)
	}
	wait := e.api.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case err := <-wait.Error:
		return fmt.Errorf("wait for the container's end: %w", err)
	case <-wait.Result:
		return nil
	}
}

// terminate sends the signal by which the image wants to be stopped.
//
// Note: the daemon's own stop does that too, but kills when its time is up, which is for the caller to decide.
func (e *engine) terminate(ctx context.Context) error {
	about, err := e.ctr.Inspect(ctx)
	if err != nil {
		return err
	}
	return e.end(ctx, cmp.Or(about.Config.StopSignal, "SIGTERM"))
}

// freeze pauses the container, or lets it go on if it is paused.
func (e *engine) freeze(ctx context.Context, pause bool) error {
	id := e.ctr.GetContainerID()
	if pause {
		_, err := e.api.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		return err
	}
	state, err := e.ctr.State(ctx)
	if err != nil || !state.Paused {
		return err
	}
	_, err = e.api.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
	return err
}

func (e *engine) state(ctx context.Context) (wire.Answer, error) {
	state, err := e.ctr.State(ctx)
	if err != nil {
		return wire.Answer{}, err
	}
	a := wire.Answer{Running: state.Running, Text: string(state.Status)}
	if !state.Running {
		a.Text = strings.TrimSpace(fmt.Sprintf("%s, exit code %d %s", state.Status, state.ExitCode, state.Error))
	}
	return a, nil
}

// logs writes what the container printed last.
func (e *engine) logs(ctx context.Context, to io.Writer, lines string) error {
	said, err := e.api.ContainerLogs(ctx, e.ctr.GetContainerID(), client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: lines})
	if err != nil {
		return err
	}
	defer func() { _ = said.Close() }()
	_, err = stdcopy.StdCopy(to, to, io.LimitReader(said, keptLog))
	return err
}

// remove keeps what the container printed and removes it with its volume. Without a container it does nothing.
func (e *engine) remove(ctx context.Context) error {
	if e.ctr == nil {
		return nil
	}
	if e.log != "" {
		if f, err := os.Create(e.log); err == nil {
			_ = e.logs(ctx, f, "all") // a log is for people, and no reason to leave a container behind
			_ = f.Close()
		}
	}
	_, err := e.api.ContainerRemove(ctx, e.ctr.GetContainerID(), client.ContainerRemoveOptions{RemoveVolumes: true, Force: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove the container: %w", err)
	}
	e.ctr = nil
	return nil
}

// removeAll removes the containers of a run, also one that its helper is just removing or still making.
func removeAll(ctx context.Context, run string) error {
	e := new(engine)
	if err := e.connect(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	pause := time.NewTicker(200 * time.Millisecond)
	defer pause.Stop()
	for quiet := 0; ; {
		left, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", brokers.Label+"="+run)})
		if err != nil {
			return fmt.Errorf("list the containers of run %s: %w", run, err)
		}
		if len(left.Items) == 0 {
			if quiet++; quiet == settled {
				return nil
			}
		} else {
			quiet = 0
		}
		for _, c := range left.Items {
			_, err = e.api.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{RemoveVolumes: true, Force: true}) // which its helper may do at this moment
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("remove the containers of run %s: %w", run, errors.Join(err, ctx.Err()))
		}
	}
}

// settled is how often in a row there must be nothing to remove: an order to make a container that was given before its giver died may still be carried out.
const settled = 3
