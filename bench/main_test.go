package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// mutantVariable names the way in which a floodproof that the tests start is broken.
const mutantVariable = "FLOODPROOF_TEST_MUTANT"

// TestMain lets this test binary be the command floodproof when it is called by that name.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"floodproof": floodproof, "xadd": xadd})
}

// floodproof is the command, broken on purpose if the environment says how.
func floodproof() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	program := &Program{Args: os.Args[1:], Arg0: os.Args[0], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: "test"}
	if name := os.Getenv(mutantVariable); name != "" {
		all := mutants()
		maps.Copy(all, strangers())
		maps.Copy(all, laneMutants())
		mutant, ok := all[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "no mutant is called %q\n", name)
			os.Exit(ExitUsage)
		}
		program.parts = mutant.parts
	}
	status := program.Main(ctx)
	stop()
	os.Exit(status)
}

// leakChecked fails the run if a test left a goroutine behind.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
