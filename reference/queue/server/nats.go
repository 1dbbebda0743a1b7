package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// natsPatience bounds one question: a server that is still at its files may take the question and never answer.
const natsPatience = 2 * time.Second

// NATS is nats-server with JetStream, built into a program: args are the arguments that make the program call child.Main of reference/queue/nats/child with
// what follows them. Distributions' binaries are often older than the atomic batches (2.12) that the queue needs, and a program that has the module has the server.
//
// Its defaults survive a loss of power (sync_interval always). The settings are sync_interval, max_payload and batch_max_msgs.
func NATS(program string, args ...string) Kind {
	args = slices.Clone(args)
	return Kind{
		Name:     "nats",
		Variable: "FLOODPROOF_NATS_URL",
		Install:  "the program itself (go build)",
		Locate: func(ctx context.Context) (Binary, error) {
			said, err := exec.CommandContext(ctx, program, append(slices.Clone(args), "-version")...).Output()
			if errors.Is(err, exec.ErrNotFound) {
				return Binary{}, fmt.Errorf("%s: %w", program, ErrMissing)
			}
			if err != nil {
				return Binary{}, fmt.Errorf("ask %s for the version of its NATS server: %w", program, err)
			}
			line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
			return Binary{Path: program, Version: line}, nil
		},
		Command: func(ctx context.Context, in Instance) (*exec.Cmd, error) { return natsCommand(ctx, in, args) },
		Address: func(in Instance) string { return "nats://127.0.0.1:" + strconv.Itoa(in.Port) },
		Ready:   natsReady,
	}
}

func natsCommand(ctx context.Context, in Instance, args []string) (*exec.Cmd, error) {
	settings := map[string]string{"port": strconv.Itoa(in.Port), "dir": in.Dir, "sync_interval": "always", "with_parent": "true"}
	for name, value := range in.Settings {
		settings[name] = value
	}
	all := slices.Clone(args)
	for name, value := range settings {
		all = append(all, "-"+name+"="+value)
	}
	return exec.CommandContext(context.WithoutCancel(ctx), in.Binary.Path, all...), nil // it outlives the context of its start
}

// natsReady asks for JetStream's account by hand: this package needs no client. A server accepts connections before it has read its files, and answers that there is
// nobody to answer (https://docs.nats.io/reference/reference-protocols/nats-protocol, read November 2026).
func natsReady(ctx context.Context, address string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(address, "nats://"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(natsPatience)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	const ask = `CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"protocol":1}` + "\r\nSUB _INBOX.ready 1\r\nPUB $JS.API.INFO _INBOX.ready 0\r\n\r\n"
	if _, err := conn.Write([]byte(ask)); err != nil {
		return err
	}
	for scanner := bufio.NewScanner(conn); scanner.Scan(); {
		switch line := scanner.Text(); {
		case strings.HasPrefix(line, "MSG _INBOX.ready"):
			return nil
		case strings.HasPrefix(line, "HMSG"), strings.HasPrefix(line, "-ERR"):
			return fmt.Errorf("JetStream does not answer: %s", line)
		}
	}
	return errors.New("the connection ended before JetStream answered")
}
