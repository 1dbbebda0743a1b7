package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

const (
	// On a terminal the status line is written over itself this often; anywhere else it is repeated this often, if it changed.
	statusOnTerminal = 500 * time.Millisecond
	statusInLog      = 10 * time.Second
)

// statusLine shows on w what line says until the returned function is called, which waits until nothing is written any more.
func statusLine(ctx context.Context, w io.Writer, line func() string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	every, format := statusInLog, "%s\n"
	f, ok := w.(*os.File)
	terminal := ok && term.IsTerminal(int(f.Fd()))
	if terminal {
		every, format = statusOnTerminal, "\r\x1b[K%s"
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for last := line(); ; {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				if terminal {
					_, _ = fmt.Fprint(w, "\r\x1b[K")
				}
				return
			}
			if now := line(); now != last {
				_, _ = fmt.Fprintf(w, format, now)
				last = now
			}
		}
	}()
	return func() { cancel(); <-ended }
}
