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

	"floodproof/reference/queue/memory/wire"
)

// Memory is the broker of reference/queue/memory, built into a program: args are the arguments that make the program call child.Main of
// reference/queue/memory/child with what follows them. It survives nothing, whatever its settings, and has none.
func Memory(program string, args ...string) Kind {
	args = slices.Clone(args)
	return Kind{
		Name:     "memory",
		Variable: "FLOODPROOF_MEMORY_ADDRESS",
		Install:  "the program itself (go build)",
		Locate: func(ctx context.Context) (Binary, error) {
			said, err := exec.CommandContext(ctx, program, append(slices.Clone(args), "-version")...).Output()
			if errors.Is(err, exec.ErrNotFound) {
				return Binary{}, fmt.Errorf("%s: %w", program, ErrMissing)
			}
			if err != nil {
				return Binary{}, fmt.Errorf("ask %s for the version of its memory broker: %w", program, err)
			}
			line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
			return Binary{Path: program, Version: line}, nil
		},
		Command: func(ctx context.Context, in Instance) (*exec.Cmd, error) {
			all := append(slices.Clone(args), "-port="+strconv.Itoa(in.Port), "-with_parent=true")
			for name, value := range in.Settings {
				all = append(all, "-"+name+"="+value) // there are none: the broker refuses to start and says so
			}
			return exec.CommandContext(context.WithoutCancel(ctx), in.Binary.Path, all...), nil // it outlives the context of its start
		},
		Address: func(in Instance) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(in.Port)) },
		Ready:   memoryReady,
	}
}

// memoryReady exchanges greetings.
func memoryReady(ctx context.Context, address string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, err = wire.Greet(conn, bufio.NewReader(conn), "")
	return err
}
