package chaos

import (
	"context"
	"fmt"

	"floodproof/reports/ledger"
)

// ForgedFlood is "traffic.forged-flood": somebody without the secret sends deliveries at a high rate. None may be taken for genuine, and the genuine ones that come
// meanwhile must not suffer: the flood excuses nothing.
//
// It is safe for concurrent use. Make it with [Kind].New.
type ForgedFlood struct {
	// Flood is whose deliveries are forged, and how many in a second.
	Flood

	flooder Flooder
}

// Name is "traffic.forged-flood".
func (*ForgedFlood) Name() string { return "traffic.forged-flood" }

// Side is Traffic.
func (*ForgedFlood) Side() ledger.Side { return ledger.Traffic }

// Inject begins the flood, heal ends it.
func (f *ForgedFlood) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	stop, err := f.flooder.Flood(ctx, f.Flood)
	if err != nil {
		return "", nil, fmt.Errorf("begin the flood: %w", err)
	}
	return fmt.Sprintf("%s, %d/s", f.Provider, f.Rate), stop, nil
}

func forgedFloodKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*ForgedFlood)(nil).Name(),
			Doc:  "Somebody without the secret floods the receiver: no forgery may be accepted, and genuine deliveries must be answered as fast as before.",
			Side: (*ForgedFlood)(nil).Side(),
			Params: []Param{
				{Name: "rate", Kind: NumberParam, Default: "1000", Doc: "Forgeries a second, 1 to 50000."},
				{Name: "provider", Kind: TextParam, Default: "stripe", Doc: "Whose deliveries are forged: one that is in the scenario's mix."},
			},
		},
		needs: needsFlooder,
		build: func(a *args, d Deps) Fault {
			return &ForgedFlood{Flood: Flood{Provider: a.values["provider"].Text, Rate: a.whole("rate", 1, 50_000)}, flooder: d.Flooder}
		},
	}.kind()
}
