package bench

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"floodproof/bench/node"
	"floodproof/reference"
	"floodproof/reference/queue"
)

// forgetsDuplicates takes every delivery for a new event. Its scenario injects no duplicates: what comes twice there is what providers repeat after an outage, and what they gave up
// while the receivers stood still and had it in their sockets all the same.
func forgetsDuplicates() mutant {
	const mark = "#"
	return mutant{
		parts: node.Parts{
			Queue: func(q queue.Queue) queue.Queue {
				return changed{q, func(j *queue.Job) { j.EventID += mark + strconv.FormatInt(time.Now().UnixNano(), 36) }}
			},
			Handler: func(reference.Handler) reference.Handler {
				return reference.HandlerFunc(func(ctx context.Context, l queue.Lease) error {
					id := l.EventID[:strings.LastIndex(l.EventID, mark)]
					return plainCall(ctx, http.MethodPost, url.PathEscape(id))
				})
			},
		},
		fails: "no-double-effect", scenario: "chaos-traffic",
	}
}
