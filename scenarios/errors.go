package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one problem of a scenario file. It says what is wrong and what to do.
type Error struct {
	// File is the path that was given, or the catalogue name with its extension.
	File string
	// Line counts from 1.
	Line int
	// Problem is what is wrong, Remedy what to do about it.
	Problem, Remedy string
}

// Error is "file.yaml:12: what is wrong; what to do", the form that editors jump to.
func (e Error) Error() string {
	return fmt.Sprintf("%s:%d: %s; %s", e.File, e.Line, e.Problem, e.Remedy)
}

// Errors are all problems of one file, in the order of its lines. [Load] returns them together, so that a file is
// corrected in one go.
type Errors []Error

// Error has one line for each problem.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As the single problems.
func (es Errors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

// sort puts the problems in one order that depends on nothing but the file.
func (es Errors) sort() {
	slices.SortStableFunc(es, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Problem, b.Problem))
	})
}

// didYouMean is the remedy for a name that is not among the known ones: the nearest of them if one is near, else all.
func didYouMean(name, kind string, known []string) string {
	if near, ok := nearest(name, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "there are no known " + kind
	}
	return fmt.Sprintf("known %s: %s", kind, strings.Join(slices.Sorted(slices.Values(known)), ", "))
}

// nearest finds the known name that is at most a third of its letters away from name.
func nearest(name string, known []string) (string, bool) {
	best, bestDistance := "", -1
	for _, k := range slices.Sorted(slices.Values(known)) {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if d <= (len(k)+2)/3 && (bestDistance < 0 || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best, bestDistance >= 0
}

// distance is the number of letters to insert, delete, change or swap with their neighbour to get from a to b
// (optimal string alignment).
func distance(a, b string) int {
	// A name that is much longer than any known one is far away whatever it says; do not spend time on it.
	const tooLong = 64
	if len(a) > tooLong || len(b) > tooLong {
		return max(len(a), len(b))
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := row[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			next[j] = min(change, row[j]+1, next[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
