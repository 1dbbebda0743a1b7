package bench

import "fmt"

// anyBroken is the first step that lost something or did it twice, nil if none did.
func (r *capacityResult) anyBroken() *step {
	for i := range r.Steps {
		if r.Steps[i].Kind == broken {
			return &r.Steps[i]
		}
	}
	return nil
}

// status is the exit status: 1 for what was lost or done twice at any rate, and if the pipeline holds none; 3 if nothing is known.
func (r *capacityResult) status() int {
	switch {
	case r.anyBroken() != nil:
		return ExitFail
	case r.Interrupted:
		return ExitInterrupted
	case r.Rate > 0 && r.Confirmed:
		return ExitPass
	case r.Rate == 0 && r.Limit == string(pipelineLimit):
		return ExitFail
	default:
		return ExitUnknown
	}
}

// sentence is the answer.
func (r *capacityResult) sentence() string {
	s := ""
	switch {
	case r.Rate == 0:
		s = "No rate held."
	case r.Confirmed:
		s = fmt.Sprintf("%.0f events a second hold, in two windows.", r.Rate)
	default:
		s = fmt.Sprintf("%.0f events a second held in one window, and were not confirmed.", r.Rate)
	}
	if b := r.anyBroken(); b != nil {
		s = fmt.Sprintf("At %.0f a second: %s. Look at %s.\n", b.Rate, b.Why, b.Dir) + s
	}
	if r.Interrupted {
		return "Interrupted: what is known so far. " + s
	}
	switch r.Limit {
	case "max":
		return s + " Nothing more was asked for (--max): the limit of the pipeline is not known."
	case string(harnessLimit):
		return s + " Above that the harness is the limit (" + r.Why + "): the pipeline may hold more."
	case string(pipelineLimit):
		return s + " Above that the pipeline is the limit: " + r.Why + "."
	default:
		return s
	}
}
