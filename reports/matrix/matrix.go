package matrix

import (
	"fmt"
	"slices"

	"floodproof/reports/verdict"
)

// Schema is the version of matrix.json.
const Schema = 1

// File names in a matrix's folder.
const (
	JSONFile = "matrix.json"
	HTMLFile = "matrix.html"
)

// Matrix is one row for each backend and one column for each family of faults. It is filled by one goroutine, with Add, and its exported fields are matrix.json.
type Matrix struct {
	Schema    int    `json:"schema"`
	Version   string `json:"version"`
	StartedAt string `json:"started_at"`
	// RequireFaults: a cell that shows nothing counts as unknown.
	RequireFaults bool `json:"require_faults"`
	// Interrupted: somebody stopped it before the last cell.
	Interrupted bool `json:"interrupted"`
	// Outcome is that of all cells together, kept by Add.
	Outcome  verdict.Outcome `json:"outcome"`
	Families []Family        `json:"families"`
	Backends []Backend       `json:"backends"`
	// Missing are the backends of this build that the machine cannot run.
	Missing []Missing `json:"missing"`
	// Cells are those that were played, in that order.
	Cells []Cell `json:"cells"`
}

// Family is a column: faults of one kind, and the scenario that plays them.
type Family struct {
	// Name is the column's head: "broker".
	Name string `json:"name"`
	// Scenario is its name, Why the question that it asks.
	Scenario string `json:"scenario"`
	Why      string `json:"why"`
	// Survives are the claims of durability that cover the family; none: every backend must survive it.
	Survives []string `json:"survives"`
}

// covers reports whether a backend with this claim must lose nothing.
func (f Family) covers(durability string) bool {
	return len(f.Survives) == 0 || slices.Contains(f.Survives, durability)
}

// Backend is a row.
type Backend struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

// Missing is a backend that is not here, and what would bring it.
type Missing struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// State is what a cell shows.
type State string

const (
	// NothingLost: every fault was exercised, and every acknowledged event took effect, once.
	NothingLost State = "nothing lost"
	// Lost: acknowledged events are missing, or happened twice.
	Lost State = "lost"
	// Stuck: acknowledged events were still waiting when the drain ended; what is missing of them nobody can say.
	Stuck State = "stuck"
	// NotExercised: nothing was shown, because a fault could not be had, failed or met nobody, or the run came to nothing.
	NotExercised State = "not exercised"
)

// Cell is what a run showed.
type Cell struct {
	Backend  string `json:"backend"`
	Family   string `json:"family"`
	Scenario string `json:"scenario"`
	State    State  `json:"state"`
	// Durability is the backend's claim in this run, and Claimed says that it covers the family: nothing may be lost.
	Durability string `json:"durability"`
	Claimed    bool   `json:"claimed"`
	Acked      int64  `json:"acked"`
	Lost       int64  `json:"lost"`
	Doubled    int64  `json:"doubled"`
	Pending    int64  `json:"pending"`
	// Faults is how many injections the run had, Done how many of them were exercised.
	Faults int `json:"faults"`
	Done   int `json:"done"`
	// Failed are the invariants that failed besides those about loss and double effects.
	Failed []string `json:"failed"`
	// Why says in a sentence what is behind State, empty where nothing needs saying.
	Why string `json:"why"`
	// Outcome is what the cell means for the whole: pass also for a loss that nobody claimed to exclude.
	Outcome   verdict.Outcome `json:"outcome"`
	DurationS float64         `json:"duration_s"`
	// Report is the way to the run's report from the folder of the matrix, with slashes; empty without a run.
	Report string `json:"report"`
}

// New makes an empty matrix.
func New(families []Family, backends []Backend) *Matrix {
	return &Matrix{Schema: Schema, Outcome: verdict.Unknown, Families: families, Backends: backends, Missing: []Missing{}, Cells: []Cell{}}
}

// Add adds a cell and judges the whole anew: fail if a cell failed, unknown if one is unknown, or is missing.
func (m *Matrix) Add(c Cell) {
	m.Cells = append(m.Cells, c)
	m.Outcome = verdict.Pass
	for _, c := range m.Cells {
		m.Outcome = verdict.Merge(m.Outcome, c.Outcome)
	}
	if len(m.Cells) < len(m.Backends)*len(m.Families) {
		m.Outcome = verdict.Merge(m.Outcome, verdict.Unknown)
	}
}

// Cell finds the cell of a backend and a family, nil if it was not played.
func (m *Matrix) Cell(backend, family string) *Cell {
	i := slices.IndexFunc(m.Cells, func(c Cell) bool { return c.Backend == backend && c.Family == family })
	if i < 0 {
		return nil
	}
	return &m.Cells[i]
}

// Words are what the cell says in full: "lost 12 of 900, doubled 1 (not claimed)".
func (c Cell) Words() string {
	words := string(c.State)
	switch {
	case c.State == Lost && c.Lost > 0:
		words = fmt.Sprintf("lost %d of %d", c.Lost, c.Acked)
		if c.Doubled > 0 {
			words += fmt.Sprintf(", doubled %d", c.Doubled)
		}
	case c.State == Lost:
		words = fmt.Sprintf("doubled %d", c.Doubled)
	}
	if (c.State == Lost || c.State == Stuck) && !c.Claimed {
		words += " (not claimed)"
	}
	return words
}
