package queuetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"floodproof/reference/queue"
)

// childAddress names the environment variable that turns a test binary into the process that killedProcess kills.
const childAddress = "FLOODPROOF_QUEUETEST_CHILD"

// Child belongs first into the TestMain of a backend's tests. In a normal test process it returns at once. In the process that killedProcess
// starts, which is the same binary, it loads the queue with that address until it is killed.
func Child(open func(ctx context.Context, address string, lease time.Duration) (queue.Queue, error)) {
	address, ok := os.LookupEnv(childAddress)
	if !ok {
		return
	}
	q, err := open(context.Background(), address, shortLease)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, "error", err)
		os.Exit(1)
	}
	load(q, os.Stdout)
}

// load enqueues from eight goroutines, and receives and settles in another. It writes down each answer as a line that is
// complete before the next call begins. It never returns.
func load(q queue.Queue, to io.Writer) {
	var mu sync.Mutex
	say := func(verb, id string) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := fmt.Fprintln(to, verb, id); err != nil {
			os.Exit(1) // the parent is gone
		}
	}
	ctx := context.Background()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("load-%d-%06d", g, i)
				if err := q.Enqueue(ctx, job(id)); err != nil {
					say("error", err.Error())
					return
				}
				say("stored", id)
			}
		})
	}
	wg.Go(func() {
		for {
			leases, err := q.Receive(ctx, "", 3)
			if err != nil {
				say("error", err.Error())
				return
			}
			for _, lease := range leases {
				say("settling", lease.EventID)
				if err := q.Settle(ctx, lease, queue.Done()); err != nil {
					say("error", err.Error())
					return
				}
				say("settled", lease.EventID)
			}
		}
	})
	wg.Wait()
}

// killedProcess ends a process in the middle of its work with SIGKILL. What it was told is stored must be there; what it was told is settled must not
// come again; what it had begun to settle may be either.
func killedProcess(s *suite) {
	if s.opened.Claims.Durability == queue.DurabilityNone {
		s.Skip("the backend claims no durability")
	}
	if s.opened.Address == "" {
		s.Skip("the backend's test gives no address for another process")
	}
	lines := s.runChild(500)
	stored, settling, settled := lines["stored"], lines["settling"], lines["settled"]
	if len(stored) == 0 {
		s.Fatalf("the other process stored nothing: does TestMain begin with queuetest.Child?")
	}
	q := s.open()
	must := 0
	for id := range stored {
		if !settling[id] {
			must++
		}
	}
	got := make(map[string]bool)
	for found := 0; found < must; {
		for _, lease := range s.receive(q, 1) {
			if settled[lease.EventID] {
				s.Fatalf("%s was settled before the kill and came again", lease.EventID)
			}
			s.wantJob(lease.Job, job(lease.EventID))
			if stored[lease.EventID] && !settling[lease.EventID] && !got[lease.EventID] {
				found++
			}
			got[lease.EventID] = true
			s.settle(q, lease, queue.Done())
		}
	}
	s.Logf("killed after %d stored and %d settled jobs; all %d that had to come came", len(stored), len(settled), must)
}

// runChild starts this test binary as the loading process, kills it after some stored jobs, and returns what it said, by verb.
func (s *suite) runChild(enough int) map[string]map[string]bool {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		s.Fatalf("find the test binary: %v", err)
	}
	cmd := exec.CommandContext(ctx, program, "-test.run=^$")
	cmd.Env = append(os.Environ(), childAddress+"="+s.opened.Address)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatalf("make a pipe: %v", err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatalf("start the other process: %v", err)
	}
	lines := make(map[string]map[string]bool)
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		verb, id, _ := strings.Cut(scanner.Text(), " ")
		if verb == "error" {
			cancel()
			s.Fatalf("the other process: %s", id)
		}
		if lines[verb] == nil {
			lines[verb] = make(map[string]bool)
		}
		lines[verb][id] = true
		if len(lines["stored"]) == enough {
			_ = cmd.Process.Kill() // and read what it had said by then
		}
	}
	_ = cmd.Wait() // it was killed
	return lines
}
