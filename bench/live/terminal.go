package live

import (
	"context"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
)

// NewTerminal returns the view for a terminal: a block of lines that redraws itself in place four times a
// second and is gone at the end, so that the report follows what was there before.
//
// It reads no keys and handles no signals: Ctrl-C reaches the process as SIGINT, for the runner to end the run in
// its own order.
func NewTerminal(out *os.File) View { return &terminal{out: out} }

type terminal struct{ out *os.File }

// Run implements [View].
//
// Note: the program does not get ctx itself. One that is cancelled from outside skips its last drawing and
// would leave a torn block on the screen.
func (t *terminal) Run(ctx context.Context, next func() Snapshot) error {
	p := tea.NewProgram(&model{width: defaultWidth}, tea.WithOutput(t.out), tea.WithInput(nil), tea.WithoutSignalHandler(), tea.WithFPS(10))
	ctx, cancel := context.WithCancel(ctx)
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		feed(ctx, next, func(s Snapshot) { p.Send(s) })
		p.Send(leave{})
	}()
	_, err := p.Run()
	cancel()
	<-fed
	if err != nil {
		return fmt.Errorf("draw progress: %w", err)
	}
	return nil
}

// feed hands snapshots to show until one is the last or ctx ends.
func feed(ctx context.Context, next func() Snapshot, show func(Snapshot)) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		s := next()
		show(s)
		if s.Phase == Done {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// leave asks the program to clear its lines and to end.
type leave struct{}

const defaultWidth = 80

// model is the program's state; bubbletea calls it from one goroutine.
type model struct {
	frame  frame
	width  int
	closed bool
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd { return nil }

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width = msg.Width
	case Snapshot:
		m.frame.add(msg)
	case leave:
		m.closed = true
		return m, tea.Quit
	}
	return m, nil
}

// View implements [tea.Model].
func (m *model) View() tea.View {
	var v tea.View
	if !m.closed {
		v = tea.NewView(render(&m.frame, m.width, ansi))
	}
	v.DisableBracketedPasteMode = true
	return v
}
