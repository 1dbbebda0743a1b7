package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sqsPatience bounds one question.
const sqsPatience = 2 * time.Second

// SQS is an emulator of Amazon SQS, built into a program: args are the arguments that make the program call child.Main of reference/queue/sqs/child with what follows
// them. It is not Amazon SQS. The setting is storage: sync or nosync. A user's own address is an endpoint, that of Amazon ("https://sqs.eu-central-1.amazonaws.com") or of
// another server.
func SQS(program string, args ...string) Kind {
	args = slices.Clone(args)
	return Kind{
		Name:     "sqs",
		Variable: "FLOODPROOF_SQS",
		Install:  "the program itself (go build)",
		Locate: func(ctx context.Context) (Binary, error) {
			said, err := exec.CommandContext(ctx, program, append(slices.Clone(args), "-version")...).Output()
			if errors.Is(err, exec.ErrNotFound) {
				return Binary{}, fmt.Errorf("%s: %w", program, ErrMissing)
			}
			if err != nil {
				return Binary{}, fmt.Errorf("ask %s for the version of its SQS emulator: %w", program, err)
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
		Address: func(in Instance) string { return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(in.Port)) },
		Ready:   sqsReady,
	}
}

// sqsReady asks for the queues by hand, as this package needs no client.
func sqsReady(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, sqsPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	req.Header.Set("X-Amz-Target", "AmazonSQS.ListQueues")
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
		return fmt.Errorf("no answer of SQS: %s: %s", answer.Status, text)
	}
	return nil
}
