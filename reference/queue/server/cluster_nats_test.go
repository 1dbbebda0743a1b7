package server_test

import (
	"context"
	"errors"
	"os"
	"testing"

	client "github.com/nats-io/nats.go"

	"floodproof/reference/queue/server"
)

// stream is a stream of texts, with three replicas.
type stream struct{ address string }

func (s stream) do(use func(client.JetStreamContext) error) error {
	conn, err := client.Connect(s.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := conn.JetStream()
	if err != nil {
		return err
	}
	return use(js)
}

func (s stream) add(ctx context.Context, text string) error {
	return s.do(func(js client.JetStreamContext) error {
		for {
			_, err := js.Publish("texts", []byte(text), client.Context(ctx))
			if errors.Is(err, client.ErrNoResponders) && ctx.Err() == nil {
				continue // the new leader has just been elected, and not every server knows
			}
			return err
		}
	})
}

func (s stream) all(ctx context.Context) (list []string, err error) {
	err = s.do(func(js client.JetStreamContext) error {
		info, err := js.StreamInfo("TEXTS", client.Context(ctx))
		if err != nil {
			return err
		}
		for n := info.State.FirstSeq; n <= info.State.LastSeq; n++ {
			msg, err := js.GetMsg("TEXTS", n, client.Context(ctx))
			if err != nil {
				return err
			}
			list = append(list, string(msg.Data))
		}
		return nil
	})
	return list, err
}

func startNATSCluster(t *testing.T) (*server.Cluster, stream) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := startCluster(t, server.NATSCluster(program, serverRole))
	s := stream{c.Address()}
	err = s.do(func(js client.JetStreamContext) error {
		_, err := js.AddStream(&client.StreamConfig{Name: "TEXTS", Subjects: []string{"texts"}, Replicas: 3}, client.Context(t.Context()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func TestNATSElects(t *testing.T) {
	c, s := startNATSCluster(t)
	checkFailover(t, c, s)
}

func TestNATSAcknowledgesOnTwoNodes(t *testing.T) {
	c, s := startNATSCluster(t)
	checkDetached(t, c, s, true)
}
