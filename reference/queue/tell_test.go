package queue

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTeller: who asks late hears of what was before, once, and of everything that follows; what nobody asks for is bounded.
func TestTeller(t *testing.T) {
	var teller Teller
	var told []string
	hear := func(l DeadLetter) { told = append(told, l.EventID) }
	tell := func(id string) { teller.Tell(DeadLetter{Job: Job{EventID: id}}) }
	tell("early")
	teller.TellDead(hear)
	tell("late")
	teller.TellDead(nil)
	tell("in between")
	teller.TellDead(hear)
	if diff := cmp.Diff([]string{"early", "late", "in between"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	teller.TellDead(nil)
	for i := range maxUntold + 5 {
		tell(fmt.Sprint(i))
	}
	told = nil
	teller.TellDead(hear)
	if len(told) != maxUntold || told[0] != "0" {
		t.Errorf("told %d from %q on, want the first %d", len(told), told[0], maxUntold)
	}
}
