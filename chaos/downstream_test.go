package chaos_test

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

func TestDownstreamFaults(t *testing.T) {
	tests := []struct {
		fault  string
		params chaos.Params
		target string // "downstream" if empty
		want   chaos.Misbehaviour
	}{
		{"downstream.slow", chaos.Params{"share": {Number: 0.1}, "delay": {Duration: 2 * time.Second}}, "",
			chaos.Misbehaviour{Fault: 7, Share: 0.1, Answer: chaos.Slow, Delay: 2 * time.Second}},
		{"downstream.hang", nil, "",
			chaos.Misbehaviour{Fault: 7, Share: 1, Answer: chaos.Hang}},
		{"downstream.hang", chaos.Params{"share": {Number: 0.1}, "moment": {Text: "after"}}, "",
			chaos.Misbehaviour{Fault: 7, Share: 0.1, Moment: chaos.AfterEffect, Answer: chaos.Hang}},
		{"downstream.rate-limit", chaos.Params{"rate": {Number: 40}}, "downstream, 40/s",
			chaos.Misbehaviour{Fault: 7, Share: 1, Rate: 40, Burst: 10, Answer: chaos.Status, Status: 429, RetryAfter: time.Second}},
		{"downstream.rate-limit", chaos.Params{"events": {Text: "klaviyo/*"}, "retry_after": {}}, "downstream, 100/s",
			chaos.Misbehaviour{Fault: 7, Share: 1, Events: "klaviyo/*", Rate: 100, Burst: 10, Answer: chaos.Status, Status: 429}},
		{"downstream.poison-type", nil, "downstream, shopify/*",
			chaos.Misbehaviour{Fault: 7, Share: 1, Events: "shopify/*", Answer: chaos.Hang}},
		{"downstream.poison-type", chaos.Params{"events": {Text: "*/orders/*"}, "answer": {Text: "reset"}}, "downstream, */orders/*",
			chaos.Misbehaviour{Fault: 7, Share: 1, Events: "*/orders/*", Answer: chaos.Reset}},
		{"downstream.poison-type", chaos.Params{"answer": {Text: "status"}}, "downstream, shopify/*",
			chaos.Misbehaviour{Fault: 7, Share: 1, Events: "shopify/*", Answer: chaos.Status, Status: 503}},
		{"downstream.throttle", nil, "",
			chaos.Misbehaviour{Fault: 7, Share: 1, Answer: chaos.Status, Status: 429, RetryAfter: time.Second}},
		{"downstream.throttle", chaos.Params{"share": {Number: 0.05}, "retry_after": {Duration: 0}}, "",
			chaos.Misbehaviour{Fault: 7, Share: 0.05, Answer: chaos.Status, Status: 429}},
		{"downstream.outage", nil, "",
			chaos.Misbehaviour{Fault: 7, Share: 1, Answer: chaos.Reset}},
		{"downstream.outage", chaos.Params{"answer": {Text: "hang"}}, "",
			chaos.Misbehaviour{Fault: 7, Share: 1, Answer: chaos.Hang}},
		{"downstream.outage", chaos.Params{"answer": {Text: "status"}}, "",
			chaos.Misbehaviour{Fault: 7, Share: 1, Answer: chaos.Status, Status: 503}},
		{"downstream.outage", chaos.Params{"answer": {Text: "status"}, "status": {Number: 500}}, "",
			chaos.Misbehaviour{Fault: 7, Share: 1, Answer: chaos.Status, Status: 500}},
		{"downstream.reset-after-effect", chaos.Params{"share": {Number: 0.5}}, "",
			chaos.Misbehaviour{Fault: 7, Share: 0.5, Moment: chaos.AfterEffect, Answer: chaos.Reset}},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			d := &downstream{}
			target, heal, err := newFault(t, tt.fault, tt.params, chaos.Deps{Downstream: d}).Inject(t.Context(), 7)
			if err != nil || target != cmp.Or(tt.target, "downstream") {
				t.Fatalf("Inject: got target %q, error %v", target, err)
			}
			if diff := gocmp.Diff([]chaos.Misbehaviour{tt.want}, d.all); diff != "" {
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
