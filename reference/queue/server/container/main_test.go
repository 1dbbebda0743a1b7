package container_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"floodproof/reference/queue/server"
	"floodproof/reference/queue/server/container"
	"floodproof/reference/queue/server/container/child"
	"floodproof/reference/queue/server/container/wire"
)

// roleVariable makes the test binary another program.
const roleVariable = "FLOODPROOF_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "helper":
		os.Exit(child.Main(os.Args[1:]))
	case "owner":
		os.Exit(owner())
	case "no docker":
		os.Exit(answer(wire.Answer{Error: "no socket", NoDocker: true}))
	case "dies":
		os.Exit(0)
	case "dumb":
		os.Exit(answer(wire.Answer{Error: "cannot"}))
	}
	goleak.VerifyTestMain(m)
}

// program is this binary in another role.
func program(role string, args ...string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), roleVariable+"="+role)
		cmd.Stderr = os.Stderr
		return cmd
	}
}

// owner starts a Redis, says its address, and waits for its own death.
func owner() int {
	c := container.Config{Program: program("helper"), Run: os.Args[1]}
	s, err := c.Start(context.Background(), server.Redis())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(s.Address()) //nolint:forbidigo // standard output is what its parent reads
	select {}
}

// answer is a helper that says the same to every order.
func answer(a wire.Answer) int {
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		var o wire.Order
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			return 1
		}
		a.N = o.N
		if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
			return 1
		}
	}
	return 0
}
