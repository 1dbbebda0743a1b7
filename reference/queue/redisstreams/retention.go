package redisstreams

import (
	"context"
	"fmt"
	"time"
)

// maxSweepPause is the longest pause between two looks at the order of coming.
const maxSweepPause = 10 * time.Minute

// runSweeps takes out of the order of coming what is kept no more, until the queue closes. The events themselves end by the server's own clock, whether or not anybody sweeps. Any
// number of processes may do it at once.
func (q *Queue) runSweeps() {
	ticker := time.NewTicker(min(q.opts.Retention/20, maxSweepPause))
	defer ticker.Stop()
	for {
		select {
		case <-q.closing:
			return
		case <-ticker.C:
			_ = q.sweep() // it may fail: the next one does it all
		}
	}
}

// sweep goes on until it comes to finished events of which none may go: those behind came later. One that was done out of that order leaves its name there a little longer.
func (q *Queue) sweep() error {
	for from := "-"; ; {
		answer, err := q.run(context.Background(), q.scripts.sweep, from)
		if err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		parts, err := array(answer, 3)
		if err != nil {
			return err
		}
		last, _ := parts[0].(string)
		if last == "" || parts[1] == int64(0) && parts[2] != int64(0) || q.isClosing() {
			return nil
		}
		from = "(" + last
	}
}

func (q *Queue) isClosing() bool {
	select {
	case <-q.closing:
		return true
	default:
		return false
	}
}
