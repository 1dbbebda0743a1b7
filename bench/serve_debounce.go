package bench

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"floodproof/reference"
	"floodproof/reference/queue"
)

// debounce is a rule of the file that makes events updates of their resource, of which only the newest is worked on.
func (f *serveFile) debounce(n *yaml.Node) reference.DebounceRule {
	var r reference.DebounceRule
	edges := map[string]queue.Edge{"trailing": queue.Trailing, "leading": queue.Leading, "both": queue.Both}
	seen := f.mapping(n, map[string]func(*yaml.Node){
		"provider": func(n *yaml.Node) { r.Provider = f.word(n) },
		"type":     func(n *yaml.Node) { r.Type = f.word(n) },
		"quiet":    func(n *yaml.Node) { f.set(n, duration(&r.Debounce.Quiet)) },
		"max_wait": func(n *yaml.Node) { f.set(n, duration(&r.Debounce.MaxWait)) },
		"edge": func(n *yaml.Node) {
			f.set(n, func(text string) error {
				edge, ok := edges[text]
				if !ok {
					return fmt.Errorf("edge is %q: use trailing, leading or both", text)
				}
				r.Debounce.Edge = edge
				return nil
			})
		},
	})
	if !seen["quiet"] {
		f.fail(n, "the rule has no quiet: say for how long nothing newer must come, such as 5s")
	}
	if r.Debounce.MaxWait == 0 {
		r.Debounce.MaxWait = debounceFactor * r.Debounce.Quiet
	}
	return r
}

// debounceFactor is how many quiet windows a row of updates may put its work off, where a rule does not say.
const debounceFactor time.Duration = 10

// canDebounce refuses rules that a queue does not know how to follow, before the first event comes.
func (c *serveConfig) canDebounce(q queue.Queue) error {
	claimer, ok := q.(interface{ Claims() queue.Claims })
	if len(c.debounce) > 0 && (!ok || !claimer.Claims().Debounce) {
		return fmt.Errorf("backend %s does not debounce: leave the rules out, or use another one", c.backend)
	}
	return nil
}
