package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Topology is how several servers of one kind keep the same data, one of them leading. Its fields are set by its constructor and not changed. The functions that get servers get
// those that run, and ask or change once: whoever has to wait calls them again.
type Topology struct {
	// Kind is that of each node. Nodes is how many there are.
	Kind  Kind
	Nodes int
	// Introduce, if not nil, tells the nodes of each other before the first of them is started.
	Introduce func(ctx context.Context, nodes []*Server) error
	// Follow makes the files and settings of a node that does not run those of a follower. Nil is for nodes that elect their leader: they are all the same.
	Follow func(ctx context.Context, node, leader *Server) error
	// Admit returns nil when the node has everything that the leader has, and the leader waits for it, if that belongs to the topology; or what is still missing.
	Admit func(ctx context.Context, node, leader *Server) error
	// Leader finds the node that takes writes, or says why there is none.
	Leader func(ctx context.Context, nodes []*Server) (*Server, error)
	// Promote makes that one of the nodes lead that has most. Nil is for nodes that elect.
	Promote func(ctx context.Context, nodes []*Server) error
	// Detach stops a follower from following, and attach lets it follow again. Nil is for nodes that elect, of which it is enough that they stand still.
	Detach func(ctx context.Context, node *Server) (attach func(context.Context) error, err error)
	// Address is what a client is told: where all nodes are.
	Address func(nodes []Instance) string
}

// Cluster is the nodes of a topology, started here. As a whole it is one server, that can be killed, stopped, paused and started again; and the node that leads can be taken out of it.
// Its methods may be called concurrently.
type Cluster struct {
	topology Topology
	nodes    []*Server

	mu sync.Mutex
	// out are nodes that were killed and have not come back. Nobody starts them but Rejoin.
	out map[*Server]bool
	// alone is the leader whom nobody follows, and paused are followers that stand still, until there is a new leader.
	alone  *Server
	paused []*Server
}

// askAgain is the pause between two questions to a node.
const askAgain = 20 * time.Millisecond

// StartCluster starts every node, in a directory of its own below Dir, and returns when each of them has what it needs to take the leader's place. Log is the file of each node with its
// number added to the name.
func (c Config) StartCluster(ctx context.Context, t Topology) (_ *Cluster, err error) {
	all := &Cluster{topology: t, out: map[*Server]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start a cluster of %s: %w", t.Kind.Name, err), all.Stop(context.WithoutCancel(ctx)))
		}
	}()
	taken := map[int]bool{}
	for i := range t.Nodes {
		one, name := c, t.Kind.Name+"-"+strconv.Itoa(i+1)
		one.Dir = filepath.Join(c.Dir, name)
		if c.Log != "" {
			ext := filepath.Ext(c.Log)
			one.Log = strings.TrimSuffix(c.Log, ext) + "-" + strconv.Itoa(i+1) + ext
		}
		node, err := one.prepare(ctx, t.Kind)
		if err != nil {
			return nil, err
		}
		if node.Instance.Port, err = otherPort(ctx, taken); err != nil {
			return nil, err
		}
		all.nodes = append(all.nodes, node)
	}
	if t.Introduce != nil {
		if err := t.Introduce(ctx, all.nodes); err != nil {
			return nil, err
		}
	}
	if t.Follow == nil {
		return all, all.Restart(ctx)
	}
	return all, all.startInTurn(ctx)
}

// otherPort is a free port that is not taken by one who has not started yet.
func otherPort(ctx context.Context, taken map[int]bool) (int, error) {
	for {
		port, err := FreePort(ctx)
		if err != nil || !taken[port] {
			taken[port] = true
			return port, err
		}
	}
}

// startInTurn starts the first node, and then those that follow it.
func (c *Cluster) startInTurn(ctx context.Context) error {
	leader := c.nodes[0]
	if err := leader.Restart(ctx); err != nil {
		return err
	}
	for _, node := range c.nodes[1:] {
		if err := c.join(ctx, node, leader); err != nil {
			return err
		}
	}
	return nil
}

// join starts a node as one that follows, and waits until it is up to date.
func (c *Cluster) join(ctx context.Context, node, leader *Server) error {
	if c.topology.Follow != nil {
		if err := c.topology.Follow(ctx, node, leader); err != nil {
			return fmt.Errorf("let %s follow %s: %w", node.name(), leader.name(), err)
		}
	}
	if err := node.Restart(ctx); err != nil {
		return err
	}
	return c.admit(ctx, node, leader)
}

func (c *Cluster) admit(ctx context.Context, node, leader *Server) error {
	if node == leader {
		return nil
	}
	err := until(ctx, func(ctx context.Context) error {
		if !node.Running() || !leader.Running() {
			return errGone
		}
		return c.topology.Admit(ctx, node, leader)
	})
	if err != nil {
		return fmt.Errorf("wait for %s to have what %s has: %w", node.name(), leader.name(), err)
	}
	return nil
}

// name is a node's in its cluster: "postgres-2".
func (s *Server) name() string { return filepath.Base(s.Instance.Dir) }

// errGone ends a wait for what cannot come any more.
var errGone = errors.New("it was ended meanwhile")

// until asks until the answer is nil or errGone.
func until(ctx context.Context, ask func(context.Context) error) error {
	pause := time.NewTicker(askAgain)
	defer pause.Stop()
	for {
		err := ask(ctx)
		if err == nil || errors.Is(err, errGone) {
			return err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// Address is what a client is told: all nodes.
func (c *Cluster) Address() string {
	var all []Instance
	for _, node := range c.nodes {
		all = append(all, node.instance())
	}
	return c.topology.Address(all)
}

// Binary is the program of the nodes.
func (c *Cluster) Binary() Binary { return c.nodes[0].Instance.Binary }

// members are the nodes that nobody has taken out.
func (c *Cluster) members() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.nodes), func(s *Server) bool { return c.out[s] })
}

func (c *Cluster) running() []*Server {
	return slices.DeleteFunc(c.members(), func(s *Server) bool { return !s.Running() })
}

func (c *Cluster) takeOut(node *Server, out bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out[node] = out
}

// leader is the node that leads now.
func (c *Cluster) leader(ctx context.Context) (*Server, error) {
	nodes := c.running()
	if len(nodes) == 0 {
		return nil, fmt.Errorf("find the leader: %w", errGone)
	}
	leader, err := c.topology.Leader(ctx, nodes)
	if err != nil {
		return nil, fmt.Errorf("find the leader: %w", err)
	}
	return leader, nil
}

func (c *Cluster) awaitLeader(ctx context.Context) (leader *Server, err error) {
	err = until(ctx, func(ctx context.Context) (err error) {
		leader, err = c.leader(ctx)
		return err
	})
	return leader, err
}

// Detach stops all followers from following, as if the network between them and the leader, or they themselves, had failed: what the leader acknowledges from now on it has alone.
// attach undoes that. It need not be called once another node leads.
func (c *Cluster) Detach(ctx context.Context) (attach func(context.Context) error, err error) {
	leader, err := c.leader(ctx)
	if err != nil {
		return nil, err
	}
	var undo []func(context.Context) error
	c.leave(leader)
	attach = func(ctx context.Context) error {
		c.leave(nil)
		var errs []error
		for _, f := range undo {
			errs = append(errs, f(ctx))
		}
		return errors.Join(errs...)
	}
	for _, node := range c.running() {
		if node == leader {
			continue
		}
		back, err := c.detach(ctx, node)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("detach %s: %w", node.name(), err), attach(context.WithoutCancel(ctx)))
		}
		undo = append(undo, back)
	}
	return attach, nil
}

// leave notes who is alone. Those who stand still tell nobody who leads.
func (c *Cluster) leave(alone *Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alone = alone
}

func (c *Cluster) left() *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alone
}

func (c *Cluster) detach(ctx context.Context, node *Server) (func(context.Context) error, error) {
	if c.topology.Detach != nil {
		return c.topology.Detach(ctx, node)
	}
	if err := node.Pause(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = append(c.paused, node)
	return func(context.Context) error { return c.wake() }, nil
}

// wake lets the followers that stand still go on. One that is gone has nothing to go on with.
func (c *Cluster) wake() error {
	c.mu.Lock()
	paused := c.paused
	c.paused = nil
	c.mu.Unlock()
	var errs []error
	for _, node := range paused {
		if node.Running() {
			errs = append(errs, node.Resume())
		}
	}
	return errors.Join(errs...)
}

// KillLeader ends the node that leads with SIGKILL, and returns its name. It stays away until Rejoin.
func (c *Cluster) KillLeader(ctx context.Context) (string, error) {
	leader := c.left()
	if leader == nil {
		var err error
		if leader, err = c.leader(ctx); err != nil {
			return "", err
		}
	}
	c.takeOut(leader, true)
	if err := leader.Kill(ctx); err != nil {
		c.takeOut(leader, false)
		return "", fmt.Errorf("kill %s: %w", leader.name(), err)
	}
	return leader.name(), nil
}

// Promote lets another node lead, the one that has most, or waits until the nodes have elected one, and returns its name when it does.
func (c *Cluster) Promote(ctx context.Context) (string, error) {
	c.leave(nil)
	if err := c.wake(); err != nil {
		return "", fmt.Errorf("wake the followers: %w", err)
	}
	if c.topology.Promote != nil {
		if err := c.topology.Promote(ctx, c.running()); err != nil {
			return "", fmt.Errorf("promote a follower: %w", err)
		}
	}
	leader, err := c.awaitLeader(ctx)
	if err != nil {
		return "", err
	}
	return leader.name(), nil
}

// Rejoin starts a node that was killed as one that follows whoever leads, and returns when it is up to date; nothing that only it had is left. If none leads it comes back as what it was.
func (c *Cluster) Rejoin(ctx context.Context, name string) error {
	at := slices.IndexFunc(c.nodes, func(s *Server) bool { return s.name() == name })
	if at < 0 {
		return fmt.Errorf("rejoin %s: there is no such node", name)
	}
	node := c.nodes[at]
	leader, err := c.leader(ctx)
	c.takeOut(node, false)
	if err != nil || leader == node {
		err = node.Restart(ctx)
	} else {
		err = c.join(ctx, node, leader)
	}
	if err != nil {
		return fmt.Errorf("rejoin %s: %w", name, err)
	}
	return nil
}

// Running reports whether all nodes run that nobody has taken out.
func (c *Cluster) Running() bool {
	return !slices.ContainsFunc(c.members(), func(s *Server) bool { return !s.Running() })
}

// Restart starts the nodes that do not run, as what they were last, and returns when they are up to date. One that was taken out stays away; if it led, and nobody has been promoted,
// nobody leads and all is as it can be.
func (c *Cluster) Restart(ctx context.Context) error {
	err := together(c.members(), func(s *Server) error {
		if s.Running() {
			return nil
		}
		return s.Restart(ctx)
	})
	if err != nil {
		return err
	}
	leader, err := c.leader(ctx)
	if err != nil && c.topology.Promote != nil {
		return nil
	}
	if err != nil {
		if leader, err = c.awaitLeader(ctx); err != nil {
			return err
		}
	}
	for _, node := range c.running() {
		if err := c.admit(ctx, node, leader); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends all nodes with SIGKILL, at the same time.
func (c *Cluster) Kill(ctx context.Context) error {
	return together(c.nodes, func(s *Server) error { return s.Kill(ctx) })
}

// Terminate asks all nodes to end, and returns when they are gone.
func (c *Cluster) Terminate(ctx context.Context) error {
	if err := c.wake(); err != nil { // who stands still hears nothing
		return err
	}
	return together(c.nodes, func(s *Server) error { return s.Terminate(ctx) })
}

// Pause stops all nodes where they stand; Resume lets them go on.
func (c *Cluster) Pause() error { return together(c.running(), (*Server).Pause) }

// Resume ends Pause.
func (c *Cluster) Resume() error { return together(c.running(), (*Server).Resume) }

// Stop ends all nodes for good, by force.
func (c *Cluster) Stop(ctx context.Context) error {
	return together(c.nodes, func(s *Server) error { return s.Stop(ctx) })
}

// together does the same to several nodes at once, although it fails for some.
func together(nodes []*Server, do func(*Server) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, node := range nodes {
		wg.Go(func() { errs[i] = do(node) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// most finds the node with the highest mark; the first of several.
func most[N cmp.Ordered](nodes []*Server, mark func(*Server) (N, error)) (*Server, error) {
	var best *Server
	var highest N
	for _, node := range nodes {
		n, err := mark(node)
		if err != nil {
			return nil, fmt.Errorf("ask %s how far it is: %w", node.name(), err)
		}
		if best == nil || n > highest {
			best, highest = node, n
		}
	}
	if best == nil {
		return nil, errors.New("no follower is left")
	}
	return best, nil
}
