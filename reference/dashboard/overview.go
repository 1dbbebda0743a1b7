package dashboard

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"time"

	"floodproof/reference"
	"floodproof/reference/queue"
)

// overview is the first page: all numbers as they are now, ready made.
type overview struct {
	frame
	// Shape changes when rows come or go; a page of another shape has to be loaded again.
	Shape   string
	Tiles   []cell
	Lanes   []row
	Workers []row
	// Trouble is why the numbers are old.
	Trouble cell
}

// row is one line of a table.
type row struct {
	Name  string
	Cells []cell
}

// cell is one number. Its key is how the stream finds it on the page.
type cell struct {
	Key, Label, Text, Tone string
}

// overview makes the page, or what the stream sends, of the latest sample.
func (d *Dashboard) overview() *overview {
	first, last, err := d.watch.span()
	o := &overview{frame: frame{Title: "Overview"}, Trouble: cell{Key: "trouble"}}
	switch {
	case err != nil && last.at.IsZero():
		o.Trouble.Text = "The queue does not answer: " + err.Error()
	case err != nil:
		o.Trouble.Text = fmt.Sprintf("The queue does not answer, these numbers are of %s: %v", last.at.UTC().Format(time.TimeOnly), err)
	case last.at.IsZero():
		o.Trouble.Text = "The queue has not been asked yet."
	}
	shape := fnv.New64a()
	seconds := last.at.Sub(first.at).Seconds()
	o.Tiles = tiles(first, last, seconds)
	for i, lane := range last.lanes {
		name := laneName(lane.Lane)
		_, _ = fmt.Fprintf(shape, "%q", name) // A hash never returns an error.
		o.Lanes = append(o.Lanes, row{name, d.laneCells(i, lane, rate(doneIn(first, lane.Lane), lane.Done+lane.Expired, seconds))})
	}
	for i, worker := range d.cfg.Workers {
		if i < len(last.counts) {
			_, _ = fmt.Fprintf(shape, "|%q", worker.Name)
			o.Workers = append(o.Workers, row{worker.Name, workerCells(i, last.counts[i], rate(first.counts[i].Done, last.counts[i].Done, seconds))})
		}
	}
	o.Shape = strconv.FormatUint(shape.Sum64(), 36)
	return o
}

// tiles are the five numbers to look at first.
func tiles(first, last sample, seconds float64) []cell {
	var sum, before queue.LaneDepth
	for _, lane := range last.lanes {
		sum.Waiting, sum.Leased, sum.Dead, sum.Done = sum.Waiting+lane.Waiting, sum.Leased+lane.Leased, sum.Dead+lane.Dead, sum.Done+lane.Done
		sum.Expired += lane.Expired
		sum.Oldest = max(sum.Oldest, lane.Oldest)
	}
	for _, lane := range first.lanes {
		before.Done += lane.Done + lane.Expired
	}
	return []cell{
		{"all/waiting", "waiting", count(sum.Waiting), ""},
		{"all/oldest", "oldest waits", age(sum.Oldest), lateness(sum.Oldest)},
		{"all/leased", "in flight", count(sum.Leased), ""},
		{"all/rate", "done a second", rate(before.Done, sum.Done+sum.Expired, seconds), ""},
		{"all/dead", "dead letters", count(sum.Dead), badIf(sum.Dead > 0)},
	}
}

func (d *Dashboard) laneCells(i int, lane queue.LaneDepth, done string) []cell {
	key := func(name string) string { return fmt.Sprintf("lane/%d/%s", i, name) }
	cells := []cell{
		{key("waiting"), "waiting", count(lane.Waiting), ""},
		{key("oldest"), "oldest waits", age(lane.Oldest), lateness(lane.Oldest)},
		{key("leased"), "in flight", count(lane.Leased), ""},
		{key("held"), "longest in hand", age(lane.Held), stuck(lane.Held)},
		{key("rate"), "done a second", done, ""},
		{key("done"), "done", count(lane.Done), ""},
		{key("dead"), "dead", count(lane.Dead), badIf(lane.Dead > 0)},
	}
	if len(d.cfg.Limits) > 0 {
		cells = append(cells, cell{key("limit"), "calls at most", d.limitText(lane.Lane), ""})
	}
	return cells
}

// limitText is the rate that a lane keeps to.
func (d *Dashboard) limitText(lane string) string {
	limit, ok := d.cfg.Limits[lane]
	if !ok {
		return "–"
	}
	for other, l := range d.cfg.Limits {
		if other != lane && l.Name == limit.Name {
			return limit.String() + ", shared"
		}
	}
	return limit.String()
}

func workerCells(i int, c reference.WorkerCounts, done string) []cell {
	key := func(name string) string { return fmt.Sprintf("worker/%d/%s", i, name) }
	failures := c.Panics + c.ReceiveFailures + c.SettleFailures
	return []cell{
		// The counts are read one after the other while the worker goes on: the difference may be off by a few for a moment.
		{key("hand"), "in hand", count(max(0, c.Leased-c.Done-c.Retried-c.Dead-c.LeaseLost-c.Unsettled)), ""},
		{key("rate"), "done a second", done, ""},
		{key("done"), "done", count(c.Done), ""},
		{key("retried"), "retried", count(c.Retried), ""},
		{key("throttled"), "throttled", count(c.Throttled), ""},
		{key("dead"), "dead", count(c.Dead), badIf(c.Dead > 0)},
		{key("lost"), "leases lost", count(c.LeaseLost + c.Unsettled), ""},
		{key("failures"), "failures", count(failures), badIf(failures > 0)},
	}
}

func doneIn(s sample, lane string) int64 {
	for _, l := range s.lanes {
		if l.Lane == lane {
			return l.Done + l.Expired // what retention deletes was done too
		}
	}
	return 0
}

// rate is how many a second, or a dash where there is nothing to tell it from.
func rate(from, to int64, seconds float64) string {
	if seconds <= 0 {
		return "–"
	}
	perSecond := float64(max(0, to-from)) / seconds
	if perSecond > 0 && perSecond < 10 {
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return count(int64(perSecond + .5))
}

// warnAfter and badAfter are from when on the oldest waiting job is shown as a warning, and as trouble.
const (
	warnAfter = 10 * time.Second
	badAfter  = time.Minute
)

// stuckAfter is from when on a job in hand is shown as a warning, and four times that as trouble: most handlers end within seconds, and a lease that is prolonged
// again and again hides one that never does.
const stuckAfter = 5 * time.Minute

func stuck(held time.Duration) string {
	switch {
	case held >= 4*stuckAfter:
		return "bad"
	case held >= stuckAfter:
		return "warn"
	}
	return ""
}

func lateness(oldest time.Duration) string {
	switch {
	case oldest >= badAfter:
		return "bad"
	case oldest >= warnAfter:
		return "warn"
	}
	return ""
}

func badIf(bad bool) string {
	if bad {
		return "bad"
	}
	return ""
}

func (d *Dashboard) serveOverview(w http.ResponseWriter, r *http.Request) {
	d.render(w, r, "overview", d.overview())
}

// table is what the template of a table needs.
type table struct {
	Of   string
	Rows []row
}

// Table makes one for the template. The rows are not empty.
func (o *overview) Table(of string, rows []row) table { return table{of, rows} }
