package harness

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"floodproof/bench/backends"
	"floodproof/bench/node"
	"floodproof/chaos"
	"floodproof/reference"
	"floodproof/reference/queue"
)

// workerNice is by how much workers give way to receivers where both want the same processor: a provider waits for a receiver, nobody for a worker. On
// two shared cores at a flat 2,000/s the ack p99 was 28 ms without and 20 ms with it, medians of three interleaved runs.
const workerNice = 5

// referenceTarget is the pipeline of this repository as the thing under test: receivers and workers as processes on one backend.
type referenceTarget struct {
	plan  *Plan
	fleet *fleet
	port  *heldPort
	// dir holds the queue, logs the children's standard error.
	dir, logs string
	// store is the runner's own handle on the queue: for depth, dead letters and holding writes, never for work. It is nil while the disk is without power;
	// whoever uses it holds using, shared.
	store backends.Store
	using sync.RWMutex
	// promises are what the queue claimed when it was opened first.
	promises queue.Claims
	// broker is the queue's server, nil if it is embedded. namespace keeps the run's queue apart from others on it.
	broker    *broker
	namespace string
	options   backends.Options
	// links stand between its parts; set before start.
	links links
	files []*os.File
}

func newReferenceTarget(ctx context.Context, p *Plan, f *fleet, dir, logs string) (*referenceTarget, error) {
	port, err := holdPort()
	if err != nil {
		return nil, err
	}
	t := &referenceTarget{plan: p, fleet: f, port: port, dir: dir, logs: logs, namespace: "floodproof-" + p.RunID}
	err = t.openPower(ctx)
	if err == nil {
		err = t.openStore(ctx)
	}
	if err != nil {
		background := context.WithoutCancel(ctx)
		return nil, errors.Join(err, t.broker.close(background), f.power.close(background), port.close())
	}
	return t, nil
}

// openPower puts the queue on a disk whose power can be cut, if the scenario does that.
func (t *referenceTarget) openPower(ctx context.Context) error {
	if !wantsPower(t.plan) {
		return nil
	}
	w, err := openPower(ctx, t.plan, t.dir)
	if err != nil {
		return err
	}
	w.target, t.fleet.power, t.dir = t, w, w.dir
	return nil
}

func (t *referenceTarget) openStore(ctx context.Context) (err error) {
	if t.broker, err = openBroker(ctx, t.plan, t.fleet.guard, t.dir, filepath.Join(t.logs, "broker.log")); err != nil {
		return err
	}
	o := backends.Options{Dir: t.dir, Namespace: t.namespace, Lease: t.plan.Scenario.Pipeline.Lease}
	if t.broker != nil {
		o.Address = t.broker.address
		if t.broker.server != nil {
			t.fleet.broker = t.broker
		}
	}
	t.options = o
	if b, err := backends.Named(t.plan.Backend); err == nil {
		t.fleet.local = b.Local
	}
	if t.store, err = backends.Open(ctx, t.plan.Backend, o); err != nil {
		return err
	}
	t.promises = t.store.Claims()
	return nil
}

// letGo gives back the runner's own handle on a queue with files of its own, and waits for those who use it; openAgain takes it anew. Unless ctx has ended the handle is given back, whatever
// the error says: a disk that fails can fail it, too.
func (t *referenceTarget) letGo(ctx context.Context) error {
	if t.broker != nil && !t.fleet.local {
		return nil
	}
	t.using.Lock()
	defer t.using.Unlock()
	if t.store == nil {
		return nil
	}
	err := t.store.Close(ctx)
	t.store = nil
	return err
}

func (t *referenceTarget) openAgain(ctx context.Context) (err error) {
	if t.broker != nil && !t.fleet.local {
		return nil
	}
	t.using.Lock()
	defer t.using.Unlock()
	if t.store == nil {
		t.store, err = backends.Open(ctx, t.plan.Backend, t.options)
	}
	return err
}

// Hold implements chaos.Holder for queues that can be held.
func (t *referenceTarget) Hold(ctx context.Context) (func(context.Context) error, error) {
	t.using.RLock()
	defer t.using.RUnlock()
	h, ok := t.store.(chaos.Holder)
	if !ok {
		return nil, errors.New("hold the queue: it has no power")
	}
	return h.Hold(ctx)
}

// queueArgs tell a process where the queue is; queueEnv tells it the address of its server, through the link that leads there: an address can hold a password, and
// everybody on the machine can read the arguments of a process.
func (t *referenceTarget) queueArgs() []string {
	args := []string{"--backend", t.plan.Backend, "--dir", t.dir}
	if t.broker == nil {
		return args
	}
	return append(args, "--namespace", t.namespace)
}

func (t *referenceTarget) queueEnv(link string) []string {
	if t.broker == nil {
		return nil
	}
	address := t.broker.address
	if host := t.links.address(link, ""); host != "" {
		address = t.broker.through(host)
	}
	return []string{node.AddressVariable + "=" + address}
}

// url is where a provider's deliveries go, at the address where the receivers are reached.
func (t *referenceTarget) url(address, provider string) string {
	return "http://" + address + "/webhooks/" + provider
}

func (t *referenceTarget) claims() queue.Claims { return t.promises }

// holder is the queue as something whose writes can be held, nil if it cannot.
func (t *referenceTarget) holder() chaos.Holder {
	if _, ok := t.store.(chaos.Holder); !ok {
		return nil
	}
	return t
}

// start starts every process and returns when all are ready. env is added to the environment of each.
func (t *referenceTarget) start(ctx context.Context, env []string) error {
	p := t.plan.Scenario.Pipeline
	for i := range p.Receivers {
		if err := t.add("receiver", i, append(t.queueEnv(chaos.LinkReceiverQueue), env...), t.receiverArgs(), t.port.files()); err != nil {
			return err
		}
	}
	for i := range p.Workers {
		if err := t.add("worker", i, append(t.queueEnv(chaos.LinkWorkerQueue), env...), t.workerArgs(), nil); err != nil {
			return err
		}
	}
	for _, c := range t.fleet.all() {
		if err := c.Start(ctx); err != nil {
			return err
		}
	}
	return t.fleet.power.settle(ctx)
}

func (t *referenceTarget) receiverArgs() []string {
	args := append([]string{"node", "receiver", "--addr", t.port.addr}, rulesOf(t.plan.Scenario.Pipeline).Args()...)
	return append(args, t.queueArgs()...)
}

func (t *referenceTarget) workerArgs() []string {
	p := t.plan.Scenario.Pipeline
	args := []string{
		"node", "worker", "--concurrency", strconv.Itoa(p.Concurrency), "--lease", p.Lease.String(),
		"--backoff", p.Backoff.String(), "--max-backoff", p.MaxBackoff.String(), "--attempts", strconv.Itoa(p.Attempts), "--give-up-after", p.GiveUpAfter.String(),
	}
	if steps := t.plan.Scenario.Steps; len(steps) > 0 {
		var list []string
		for _, s := range steps {
			list = append(list, reference.Step(s).String())
		}
		args = append(args, "--steps", strings.Join(list, ","))
	}
	args = append(args, rulesOf(p).Args()...)
	return append(args, t.queueArgs()...)
}

func (t *referenceTarget) add(role string, i int, env, args []string, extra []*os.File) error {
	name := fmt.Sprintf("%s-%d", role, i+1)
	logs, err := os.OpenFile(filepath.Join(t.logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", name, err)
	}
	t.files = append(t.files, logs)
	nice := 0
	if role == "worker" {
		nice = workerNice
	}
	t.fleet.add(spec{name: name, role: role, logs: logs, nice: nice}, func() *exec.Cmd {
		cmd := t.plan.Self(append(args, "--name", name)...)
		cmd.Env = append(os.Environ(), env...)
		cmd.ExtraFiles = extra
		return cmd
	})
	return nil
}

// depth is how many jobs the queue holds that are not finished, -1 if nobody knows. Nobody knows once the power was cut of a queue that does not claim to survive that: counts that
// are kept beside the jobs, or by clients that outlived them, tell of jobs that are gone, and it would never be empty again.
func (t *referenceTarget) depth(ctx context.Context) int64 {
	if t.fleet.power.wasCut() && t.promises.Durability != queue.DurabilityPower && t.promises.Durability != queue.DurabilityFailover {
		return -1
	}
	t.using.RLock()
	defer t.using.RUnlock()
	d, ok := t.store.(queue.Depther)
	if !ok {
		return -1
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	now, err := d.Depth(ctx)
	if err != nil {
		return -1
	}
	return now.Waiting + now.Leased
}

// deadEntry is one entry of a target's dead-letter list.
type deadEntry struct {
	id     string
	hash   uint64
	reason string
}

// listsDeadLetters reports whether the target can show its dead letters; without that no dead letter counts.
func (t *referenceTarget) listsDeadLetters() bool {
	t.using.RLock()
	defer t.using.RUnlock()
	_, ok := t.store.(queue.DeadLister)
	return ok
}

// deadLetters is the target's dead-letter list, empty if it has none to show.
func (t *referenceTarget) deadLetters(ctx context.Context) ([]deadEntry, error) {
	t.using.RLock()
	defer t.using.RUnlock()
	l, ok := t.store.(queue.DeadLister)
	if !ok {
		return nil, nil
	}
	var entries []deadEntry
	err := l.DeadLetters(ctx, func(d queue.DeadLetter) error {
		entries = append(entries, deadEntry{id: d.EventID, hash: payloadHash(d.Payload), reason: d.Reason})
		return nil
	})
	return entries, err
}

// payloadHash is the hash by which a dead letter shows that it kept what was sent: the first eight bytes of SHA-256.
func payloadHash(payload []byte) uint64 {
	sum := sha256.Sum256(payload)
	return binary.BigEndian.Uint64(sum[:8])
}

// close releases the runner's own handles; the processes were stopped before.
func (t *referenceTarget) close(ctx context.Context) error {
	err := errors.Join(t.letGo(ctx), t.closeClient(ctx), t.broker.close(ctx), t.fleet.power.close(ctx), t.port.close())
	for _, f := range t.files {
		err = errors.Join(err, f.Close(), removeIfEmpty(f.Name()))
	}
	_ = os.Remove(t.logs) // which stays if a log is left in it
	return err
}

// closeClient closes the runner's handle on a queue that is a server.
func (t *referenceTarget) closeClient(ctx context.Context) error {
	t.using.Lock()
	defer t.using.Unlock()
	if t.store == nil {
		return nil
	}
	err := t.store.Close(ctx)
	t.store = nil
	return err
}

func removeIfEmpty(path string) error {
	if info, err := os.Stat(path); err != nil || info.Size() > 0 {
		return err
	}
	return os.Remove(path)
}

// diskBytes is what queue and store take on disk.
func diskBytes(dir string) *int64 {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if err != nil {
		return nil
	}
	return &total
}
