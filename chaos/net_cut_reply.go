package chaos

import (
	"context"

	"floodproof/chaos/proxy"
)

// Most values of the parameters, against slips of the pen.
const (
	mostCutByte = 1 << 30
	mostCuts    = 1_000_000
)

// NetCutReply is "net.cut-reply": the server does what it was asked for and answers, and the connection ends in the middle of the answer: it is durable, and the client
// never hears of it. What the client repeats must not be done twice; what it does not repeat must not be lost.
//
// It is safe for concurrent use. Make it with [Kind].New.
type NetCutReply struct {
	NetLink
	// Cut says which replies end at which byte.
	Cut proxy.Cut
}

// Name is "net.cut-reply".
func (*NetCutReply) Name() string { return "net.cut-reply" }

// Inject begins to cut, heal ends it.
func (f *NetCutReply) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return f.impose(ctx, proxy.Condition{Direction: proxy.Down, Cut: &f.Cut}, func(m proxy.Met) bool { return m.Cuts > 0 })
}

func netCutReplyKind() Kind {
	return netSpec{
		Kind: Kind{
			Name: (*NetCutReply)(nil).Name(),
			Doc:  "A connection ends in the middle of the reply to work that is done: the repetition must not do it twice, and its absence not lose it.",
			Params: []Param{
				{Name: "byte", Kind: NumberParam, Default: "0", Doc: "How many bytes of the reply pass; with 0 nothing of it does."},
				{Name: "reply", Kind: NumberParam, Default: "1", Doc: "Which reply of a connection is cut, counted from the begin of the fault."},
				{Name: "cuts", Kind: NumberParam, Default: "0", Doc: "How many connections are cut, 0 for all."},
				{Name: "end", Kind: TextParam, Default: "close", Doc: "close or reset: how the connection ends."},
			},
		},
		link: LinkReceiverQueue,
		build: func(a *args, l NetLink) Fault {
			return &NetCutReply{NetLink: l, Cut: proxy.Cut{
				Byte: int64(a.whole("byte", 0, mostCutByte)), Reply: int64(a.whole("reply", 1, mostCuts)),
				Times: int64(a.whole("cuts", 0, mostCuts)), Reset: a.word("end", "close", "reset") == "reset",
			}}
		},
	}.kind()
}
