package node

import (
	"cmp"
	"fmt"
	"os"

	"floodproof/reference"
	"floodproof/reference/queue"
)

// laneWorker is what works on one lane: with the lane's own settings, as far as it has any, and the process's otherwise.
func (p *Process) laneWorker(lane string, rules Rules, s settings, store queue.Queue, handler reference.Handler) (*reference.Worker, error) {
	own := rules.Own[lane]
	if p.Parts.Lane != nil {
		own = p.Parts.Lane(own)
	}
	if own.Rate > 0 {
		steps, err := reference.ParseSteps(cmp.Or(s.steps, "POST effect"))
		if err != nil {
			return nil, fmt.Errorf("node worker: --steps: %w", err)
		}
		handler, err = reference.NewLimitHandler(handler, store, reference.RateConfig{
			Limit: queue.Limit{Name: "lane " + lane, Rate: own.Rate, Burst: own.Burst}, Calls: len(steps), Workers: rules.Workers,
		})
		if err != nil {
			return nil, err
		}
	}
	giveUpAfter := s.giveUpAfter
	if giveUpAfter == 0 {
		giveUpAfter = -1 // to a worker, 0 is the default
	}
	return &reference.Worker{
		Queue: store, Lane: lane, Handler: handler, Concurrency: rules.Concurrency[lane],
		Backoff:     reference.Backoff{Base: cmp.Or(own.Backoff, s.backoff), Max: cmp.Or(own.MaxBackoff, s.maxBackoff)},
		MaxAttempts: cmp.Or(own.Attempts, s.attempts), GiveUpAfter: giveUpAfter, Logger: p.logger(s), Crash: s.controls.Crash, Now: s.controls.Now, Seed: uint64(os.Getpid()),
	}, nil
}
