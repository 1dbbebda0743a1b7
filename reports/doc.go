// Package reports shows what happened in a run and whether it was right.
//
// [Load] reads a run's folder into a [Report]; a [Format] writes one as text, Markdown, JUnit XML, HTML, an HdrHistogram
// percentile file or JSON lines; [WriteAll] writes the files that belong into the folder. The package judges nothing: every
// outcome comes from reports/verdict, every number from there or from the ledger itself.
//
// Whatever a pipeline or a provider could have chosen (ids, names, notes) is hostile here. Each format escapes for itself.
//
// Note: the charts inside report.html are drawn by this package as inline SVG, those in the image files by
// gonum.org/v1/plot. gonum's SVG has fixed colours and fonts, cannot follow a reader's light or dark theme and has no
// titles to hover over; inside a page it looks like a picture from elsewhere. In a file of its own that is what one wants.
package reports
