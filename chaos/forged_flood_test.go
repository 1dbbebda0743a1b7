package chaos_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

func TestForgedFlood(t *testing.T) {
	f := &flooder{}
	fault := newFault(t, "traffic.forged-flood", chaos.Params{"rate": {Number: 5000}, "provider": {Text: "shopify"}}, chaos.Deps{Flooder: f})
	target, heal, err := fault.Inject(t.Context(), 3)
	if err != nil || target != "shopify, 5000/s" || f.running != 1 {
		t.Fatalf("Inject: got target %q, error %v and %d floods", target, err, f.running)
	}
	if diff := cmp.Diff([]chaos.Flood{{Provider: "shopify", Rate: 5000}}, f.floods); diff != "" {
		t.Errorf("floods (-want +got):\n%s", diff)
	}
	if err := heal(t.Context()); err != nil || f.running != 0 {
		t.Errorf("heal: error %v, %d floods", err, f.running)
	}
	f.refuses = errBroken
	if _, heal, err := fault.Inject(t.Context(), 4); !errors.Is(err, errBroken) || heal != nil {
		t.Errorf("Inject where nobody can: got error %v and heal %t", err, heal != nil)
	}
}
