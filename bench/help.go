package bench

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"floodproof/reports/wording"
)

const (
	// helpWidth is how wide a help is, helpIndent where what a flag does begins, and verbIndent what a verb does.
	helpWidth  = 80
	helpIndent = 26
	verbIndent = 17
)

// printFlag writes a flag and what it does, within the width.
func printFlag(w io.Writer, f *flag.Flag) {
	kind, usage := flag.UnquoteUsage(f)
	head := strings.TrimRight("  --"+f.Name+" "+kind, " ")
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && !strings.Contains(usage, "(default") {
		usage += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	if utf8.RuneCountInString(head) >= helpIndent-1 {
		_, _ = fmt.Fprintln(w, head)
		head = ""
	}
	_, _ = fmt.Fprintf(w, "%-*s%s", helpIndent, head, wrap(usage, helpIndent, helpWidth))
}

// help makes a verb's help of a text and its flags, in groups if there are some; the first group has no title.
func (p *Program) help(fs *flag.FlagSet, text string, groups ...[]string) {
	fs.Usage = func() {
		synopsis, doc, _ := strings.Cut(text, "\n")
		_, _ = fmt.Fprint(p.Stdout, wrap("usage: floodproof "+synopsis, verbIndent, helpWidth), wrapText(doc), "\n")
		grouped := map[string]bool{}
		for _, g := range groups {
			for _, name := range g[1:] {
				grouped[name] = true
			}
		}
		fs.VisitAll(func(f *flag.Flag) {
			if !grouped[f.Name] {
				printFlag(p.Stdout, f)
			}
		})
		for _, g := range groups {
			_, _ = fmt.Fprintf(p.Stdout, "\n%s:\n", g[0])
			for _, name := range g[1:] {
				printFlag(p.Stdout, fs.Lookup(name))
			}
		}
	}
}

// wrapText breaks what is longer than a line of the help: a paragraph as a whole, a line that begins with spaces by itself.
func wrapText(text string) string {
	var b strings.Builder
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			b.WriteString(wrap(strings.Join(paragraph, " "), 0, helpWidth))
		}
		paragraph = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		bare := strings.TrimLeft(line, " ")
		if bare != "" && bare == line {
			paragraph = append(paragraph, line)
			continue
		}
		end()
		if utf8.RuneCountInString(line) <= helpWidth {
			b.WriteString(line + "\n")
			continue
		}
		indent := len(line) - len(bare)
		b.WriteString(line[:indent] + wrap(bare, indent, helpWidth))
	}
	end()
	return b.String()
}

// wrap breaks a text at spaces so that no line is longer than width; lines but the first are indented, and the last ends with a newline. A longer word stands alone.
func wrap(text string, indent, width int) string {
	words, pad := strings.Fields(text), strings.Repeat(" ", indent)
	if len(words) == 0 {
		return "\n"
	}
	return wording.Wrap(pad, pad, words, width)[indent:]
}
