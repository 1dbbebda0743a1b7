package chaos_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

func TestDownstreamFaults(t *testing.T) {
	tests := []struct {
		fault  string
		params chaos.Params
		want   chaos.Misbehaviour
	}{
		{"downstream.throttle", nil,
			chaos.Misbehaviour{Fault: 7, Share: 1, Answer: chaos.Status, Status: 429, RetryAfter: time.Second}},
		{"downstream.throttle", chaos.Params{"share": {Number: 0.05}, "retry_after": {Duration: 0}},
			chaos.Misbehaviour{Fault: 7, Share: 0.05, Answer: chaos.Status, Status: 429}},
		{"downstream.outage", nil,
			chaos.Misbehaviour{Fault: 7, Share: 1, Answer: chaos.Reset}},
		{"downstream.outage", chaos.Params{"answer": {Text: "hang"}},
			chaos.Misbehaviour{Fault: 7, Share: 1, Answer: chaos.Hang}},
		{"downstream.outage", chaos.Params{"answer": {Text: "status"}},
			chaos.Misbehaviour{Fault: 7, Share: 1, Answer: chaos.Status, Status: 503}},
		{"downstream.outage", chaos.Params{"answer": {Text: "status"}, "status": {Number: 500}},
			chaos.Misbehaviour{Fault: 7, Share: 1, Answer: chaos.Status, Status: 500}},
		{"downstream.reset-after-effect", chaos.Params{"share": {Number: 0.5}},
			chaos.Misbehaviour{Fault: 7, Share: 0.5, Moment: chaos.AfterEffect, Answer: chaos.Reset}},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			d := &downstream{}
			target, heal, err := newFault(t, tt.fault, tt.params, chaos.Deps{Downstream: d}).Inject(t.Context(), 7)
			if err != nil || target != "downstream" {
				t.Fatalf("Inject: got target %q, error %v", target, err)
			}
			if diff := cmp.Diff([]chaos.Misbehaviour{tt.want}, d.all); diff != "" {
				t.Errorf("placed (-want +got):\n%s", diff)
			}
			if d.inPlace() != 1 {
				t.Errorf("%d misbehaviours in place, want 1", d.inPlace())
			}
			if err := heal(t.Context()); err != nil || d.inPlace() != 0 {
				t.Errorf("heal: error %v, %d misbehaviours in place", err, d.inPlace())
			}
		})
	}
}
