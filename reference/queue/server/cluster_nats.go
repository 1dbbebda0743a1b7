package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	client "github.com/nats-io/nats.go"
)

// NATSCluster is three servers of [NATS], which elect whoever leads, for the cluster and for each stream. A stream with three replicas acknowledges a message when two have synced it
// (https://docs.nats.io/nats-concepts/jetstream/streams, read November 2026). An election takes four to nine seconds.
//
// The leader of the cluster as a whole is the one that leads its first stream, which is the one with the queue.
func NATSCluster(program string, args ...string) Topology {
	return Topology{
		Kind: NATS(program, args...), Nodes: 3,
		Introduce: introduceNATS,
		Admit:     admitNATS,
		Leader:    natsLeader,
		Address: func(nodes []Instance) string {
			var all []string
			for _, in := range nodes {
				all = append(all, "nats://127.0.0.1:"+strconv.Itoa(in.Port))
			}
			return strings.Join(all, ",")
		},
	}
}

// introduceNATS gives each node a port for the others.
func introduceNATS(ctx context.Context, nodes []*Server) error {
	taken := map[int]bool{}
	for _, node := range nodes {
		taken[node.Instance.Port] = true
	}
	var routes []string
	for _, node := range nodes {
		port, err := otherPort(ctx, taken)
		if err != nil {
			return err
		}
		node.set("name", node.name())
		node.set("cluster_port", strconv.Itoa(port))
		routes = append(routes, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	for _, node := range nodes {
		node.set("routes", strings.Join(routes, ","))
	}
	return nil
}

// natsGroup is what a group of replicas says of itself. Only its leader knows of the replicas.
type natsGroup struct {
	Leader   string `json:"leader"`
	Replicas []struct {
		Name    string `json:"name"`
		Current bool   `json:"current"`
		Offline bool   `json:"offline"`
	} `json:"replicas"`
}

// has says what is missing until a node has everything that the group has.
func (g natsGroup) has(name string) error {
	if g.Leader == name {
		return nil
	}
	for _, r := range g.Replicas {
		if r.Name == name && r.Current && !r.Offline {
			return nil
		}
	}
	return fmt.Errorf("%s is not up to date", name)
}

// natsLeader finds the leader of the first stream, or of the cluster while it has none.
func natsLeader(ctx context.Context, nodes []*Server) (*Server, error) {
	var leader string
	err := onNATS(ctx, nodes, func(ctx context.Context, conn *client.Conn) error {
		streams, err := natsStreams(ctx, conn)
		if err != nil {
			return err
		}
		var group natsGroup
		if len(streams) == 0 {
			group, err = natsMeta(ctx, conn)
		} else {
			group, err = natsStream(ctx, conn, streams[0])
		}
		leader = group.Leader
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		if node.name() == leader {
			return node, nil
		}
	}
	return nil, fmt.Errorf("the leader is %q, which does not run", leader)
}

// admitNATS asks the cluster, and each stream, whether the node is one of theirs and has everything.
func admitNATS(ctx context.Context, node, leader *Server) error {
	return onNATS(ctx, []*Server{leader}, func(ctx context.Context, conn *client.Conn) error {
		meta, err := natsMeta(ctx, conn)
		if err != nil {
			return err
		}
		if err := meta.has(node.name()); err != nil {
			return fmt.Errorf("the cluster: %w", err)
		}
		streams, err := natsStreams(ctx, conn)
		if err != nil {
			return err
		}
		for _, name := range streams {
			group, err := natsStream(ctx, conn, name)
			if err != nil {
				return err
			}
			if err := group.has(node.name()); err != nil {
				return fmt.Errorf("the stream %s: %w", name, err)
			}
		}
		return nil
	})
}

// onNATS asks through one of the nodes.
func onNATS(ctx context.Context, nodes []*Server, ask func(context.Context, *client.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	var addresses []string
	for _, node := range nodes {
		addresses = append(addresses, node.Address())
	}
	conn, err := client.Connect(strings.Join(addresses, ","), client.Timeout(natsPatience), client.NoReconnect(), client.IgnoreDiscoveredServers())
	if err != nil {
		return err
	}
	defer conn.Close()
	return ask(ctx, conn)
}

// askNATS asks JetStream.
func askNATS(ctx context.Context, conn *client.Conn, subject string, to any) error {
	answer, err := conn.RequestWithContext(ctx, "$JS.API."+subject, nil)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", subject, err)
	}
	var failure struct {
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := errors.Join(json.Unmarshal(answer.Data, &failure), json.Unmarshal(answer.Data, to)); err != nil {
		return fmt.Errorf("read the answer about %s: %w", subject, err)
	}
	if failure.Error != nil {
		return fmt.Errorf("ask for %s: %s", subject, failure.Error.Description)
	}
	return nil
}

func natsStreams(ctx context.Context, conn *client.Conn) ([]string, error) {
	var names struct {
		Streams []string `json:"streams"`
	}
	err := askNATS(ctx, conn, "STREAM.NAMES", &names)
	return names.Streams, err
}

func natsStream(ctx context.Context, conn *client.Conn, name string) (natsGroup, error) {
	var info struct {
		Cluster natsGroup `json:"cluster"`
	}
	err := askNATS(ctx, conn, "STREAM.INFO."+name, &info)
	return info.Cluster, err
}

// natsMeta is the group that knows of all streams. Every server answers, and its leader tells more than the others.
func natsMeta(ctx context.Context, conn *client.Conn) (group natsGroup, err error) {
	sub, err := conn.SubscribeSync(conn.NewInbox())
	if err != nil {
		return group, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := conn.PublishRequest("$SYS.REQ.SERVER.PING.JSZ", sub.Subject, nil); err != nil {
		return group, err
	}
	ctx, cancel := context.WithTimeout(ctx, natsAnswers)
	defer cancel()
	for len(group.Replicas) == 0 {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break // that was all
		}
		var answer struct {
			Data struct {
				Meta natsGroup `json:"meta_cluster"`
			} `json:"data"`
		}
		if err := json.Unmarshal(msg.Data, &answer); err != nil {
			return group, fmt.Errorf("read what a server says of its cluster: %w", err)
		}
		if meta := answer.Data.Meta; group.Leader == "" || len(meta.Replicas) > 0 {
			group = meta
		}
	}
	if group.Leader == "" {
		return group, errors.New("the cluster has no leader")
	}
	return group, nil
}

// natsAnswers is how long the answers of all servers are waited for.
const natsAnswers = 500 * time.Millisecond
