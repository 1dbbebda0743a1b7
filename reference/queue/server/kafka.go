package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kafkaPatience bounds one question.
const kafkaPatience = 2 * time.Second

// Kafka is kfake, a broker that speaks Kafka's protocol, built into a program: args are the arguments that make the program call child.Main of reference/queue/kafka/child
// with what follows them. It is not Kafka, which needs Java. The setting is storage: sync, nosync or memory.
func Kafka(program string, args ...string) Kind {
	args = slices.Clone(args)
	return Kind{
		Name:     "kafka",
		Variable: "FLOODPROOF_KAFKA_BROKERS",
		Install:  "the program itself (go build)",
		Locate: func(ctx context.Context) (Binary, error) {
			said, err := exec.CommandContext(ctx, program, append(slices.Clone(args), "-version")...).Output()
			if errors.Is(err, exec.ErrNotFound) {
				return Binary{}, fmt.Errorf("%s: %w", program, ErrMissing)
			}
			if err != nil {
				return Binary{}, fmt.Errorf("ask %s for the version of its Kafka broker: %w", program, err)
			}
			line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
			return Binary{Path: program, Version: line}, nil
		},
		Command: func(ctx context.Context, in Instance) (*exec.Cmd, error) {
			all := append(slices.Clone(args), "-dir="+in.Dir, "-port="+strconv.Itoa(in.Port), "-with_parent=true")
			for name, value := range in.Settings {
				all = append(all, "-"+name+"="+value)
			}
			return exec.CommandContext(context.WithoutCancel(ctx), in.Binary.Path, all...), nil // it outlives the context of its start
		},
		Address: func(in Instance) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(in.Port)) },
		Ready:   kafkaReady,
	}
}

// kafkaReady asks for the broker's versions by hand, as this package needs no client: key 18, version 0, a correlation id and no name
// (https://kafka.apache.org/protocol.html#The_Messages_ApiVersions, read November 2026). The answer begins with the id and no error.
func kafkaReady(ctx context.Context, address string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(kafkaPatience)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	const id = 0x666c6f64
	ask := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 10, 0, 18, 0, 0}, id)
	if _, err := conn.Write(append(ask, 0xff, 0xff)); err != nil {
		return err
	}
	var answer [10]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	if got, code := binary.BigEndian.Uint32(answer[4:]), binary.BigEndian.Uint16(answer[8:]); got != id || code != 0 {
		return fmt.Errorf("no answer of a Kafka broker: id %#x, error %d", got, code)
	}
	return nil
}
