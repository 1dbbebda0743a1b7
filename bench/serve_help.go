package bench

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// helpWidth is how wide a help is, helpIndent where what a flag does begins.
	helpWidth  = 80
	helpIndent = 26
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
		_, _ = fmt.Fprintf(p.Stdout, "usage: floodproof %s\n", text)
		_, _ = fmt.Fprintln(p.Stdout)
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
