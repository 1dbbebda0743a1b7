package chaos_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

// claimedFleet is fake processes that know who holds them dead.
type claimedFleet struct {
	fleet
	mu      *sync.Mutex
	holders map[*process]map[any]bool
	owner   any
}

func (f claimedFleet) For(owner any) chaos.Fleet {
	f.owner = owner
	return f
}

func (f claimedFleet) Processes(role string) []chaos.Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []chaos.Process
	for _, p := range f.fleet[role] {
		if f.holders[p] == nil {
			f.holders[p] = map[any]bool{}
		}
		list = append(list, claimedProcess{p, f.mu, f.holders[p], f.owner})
	}
	return list
}

type claimedProcess struct {
	*process
	mu      *sync.Mutex
	holders map[any]bool
	owner   any
}

func (p claimedProcess) Kill(ctx context.Context) error {
	p.mu.Lock()
	p.holders[p.owner] = true
	p.mu.Unlock()
	return p.process.Kill(ctx)
}

func (p claimedProcess) Start(ctx context.Context) error {
	p.mu.Lock()
	delete(p.holders, p.owner)
	held := len(p.holders) > 0
	p.mu.Unlock()
	if held {
		return nil
	}
	return p.process.Start(ctx)
}

// TestOverlappingFaultsKeepTheirVictims: a worker that two faults have killed is started by the heal of the second, not of the first.
func TestOverlappingFaultsKeepTheirVictims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := claimedFleet{fleet: newFleet(&diary{}, "worker", 1), mu: new(sync.Mutex), holders: map[*process]map[any]bool{}}
		deps := chaos.Deps{Fleet: f, Rand: seeded(1)}
		s := newStage(
			chaos.Step{Fault: newFault(t, "worker.kill", nil, deps), At: time.Second, For: 3 * time.Second},
			chaos.Step{Fault: newFault(t, "worker.kill", nil, deps), At: 2 * time.Second, For: 4 * time.Second},
		)
		begin, dead := time.Now(), map[time.Duration]bool{}
		var mu sync.Mutex
		for _, at := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second, 5 * time.Second, 7 * time.Second} {
			time.AfterFunc(at, func() {
				mu.Lock()
				defer mu.Unlock()
				dead[time.Since(begin)] = len(f.dead("worker")) > 0
			})
		}
		if err := s.Play(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		want := map[time.Duration]bool{500 * time.Millisecond: false, 1500 * time.Millisecond: true, 3 * time.Second: true, 5 * time.Second: true, 7 * time.Second: false}
		if diff := cmp.Diff(want, dead); diff != "" {
			t.Errorf("dead at (-want +got):\n%s", diff)
		}
	})
}
