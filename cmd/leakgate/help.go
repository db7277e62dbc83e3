package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width of the help in columns.
const helpWidth = 80

// pages is the base address of the documentation.
const pages = "https://github.com/leakgate/leakgate/blob/main/"

// manual holds the parts of a command's help that cobra does not support.
type manual struct {
	exits       string // a line for each code: the code, a space, its meaning
	page        string // a page of the repository with details
	environment bool   // whether to list the variables
}

func (m manual) annotations() map[string]string {
	out := map[string]string{"exits": m.exits, "page": m.page}
	if m.environment {
		out["environment"] = environmentHelp
	}
	return out
}

// The exit codes shared by all commands that read dumps.
const dumpExits = `2 the command line is invalid, or a file cannot be opened
6 a dump could not be read or analyzed
130 interrupted`

// environmentHelp lists the variables that leakgate reads.
const environmentHelp = `LEAKGATE_SECTION_KEY a key of the YAML file, such as LEAKGATE_SAMPLE_NORMAL=10s
LEAKGATE_PROFILE the profile of the YAML file to use, like --profile
LEAKGATE_WAIT true: wait for a device that another run uses, like --wait
LEAKGATE_LEASES the directory for the locks of devices and run directories
LEAKGATE_RUNS the directory for runs without --out; by default leakgate-runs
LEAKGATE_ACCEPTED the file of accepted leaks, like --accepted
LEAKGATE_ARTIFACT the name of the artifact in which a GitHub workflow uploads the run directory, for the comment
LEAKGATE_GITHUB_TOKEN the token for baselines in artifacts and for comments, which workloads do not see; by default GITHUB_TOKEN
NO_COLOR if not empty: do not color the output
ANDROID_SERIAL the device to use; adb's other variables apply too`

// writeHelp prints the help for a command in the usual sections. It does not
// use text/template, which would keep every exported method of the program in
// the binary.
func writeHelp(w io.Writer, cmd *cobra.Command) {
	var b strings.Builder
	writeParagraphs(&b, cmp.Or(cmd.Long, cmd.Short))
	fmt.Fprintf(&b, "\nUsage:\n  %s\n", cmd.UseLine())
	writeCommands(&b, cmd)
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	writeFlags(&b, "Flags:", cmd.LocalNonPersistentFlags())
	writePairs(&b, "Exit codes:", cmd.Annotations["exits"])
	writePairs(&b, "Environment:", cmd.Annotations["environment"])
	writeFlags(&b, "Global flags:", cmd.Root().PersistentFlags())
	if page := cmd.Annotations["page"]; page != "" {
		fmt.Fprintf(&b, "\nSee also:\n  %s%s\n", pages, page)
	}
	if cmd.HasSubCommands() {
		fmt.Fprintf(&b, "\nRun `%s COMMAND --help` for more information about a command.\n", cmd.CommandPath())
	}
	_, _ = io.WriteString(w, b.String()) // there is nowhere else to report it
}

// writeParagraphs writes paragraphs, each wrapped to the width of the help.
// Indented lines are not changed.
func writeParagraphs(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		if strings.HasPrefix(paragraph, " ") {
			fmt.Fprintln(b, paragraph)
			continue
		}
		for _, line := range fill(paragraph, helpWidth) {
			fmt.Fprintln(b, line)
		}
	}
}

// fill wraps a string to lines of at most width columns.
func fill(s string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(s) {
		last := len(lines) - 1
		if last < 0 || text.Columns(lines[last])+1+text.Columns(word) > width {
			lines = append(lines, word)
			continue
		}
		lines[last] += " " + word
	}
	return lines
}

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	groups := cmd.Groups()
	if len(groups) == 0 && cmd.HasSubCommands() {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	for _, group := range groups {
		var rows []helpRow
		for _, sub := range cmd.Commands() {
			if sub.GroupID == group.ID && (sub.IsAvailableCommand() || sub.Name() == "help") {
				rows = append(rows, helpRow{sub.Name(), sub.Short})
			}
		}
		writeRows(b, group.Title, rows)
	}
}

// helpRow is a name and its description.
type helpRow struct{ name, text string }

func writeRows(b *strings.Builder, title string, rows []helpRow) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	wide := 0
	for _, r := range rows {
		wide = max(wide, len(r.name))
	}
	for _, r := range rows {
		for i, line := range fill(r.text, helpWidth-wide-4) {
			name := r.name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(b, "  %-*s  %s\n", wide, name, line)
		}
	}
}

// writePairs prints each name with its description beside it.
func writePairs(b *strings.Builder, title, text string) {
	var rows []helpRow
	for line := range strings.Lines(text) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		rows = append(rows, helpRow{name, text})
	}
	writeRows(b, title, rows)
}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	var rows []helpRow
	flags.VisitAll(func(f *pflag.Flag) {
		r := helpRow{"    --" + f.Name, f.Usage}
		if f.Shorthand != "" {
			r.name = "-" + f.Shorthand + ", --" + f.Name
		}
		if kind := f.Value.Type(); kind != "bool" {
			r.name += " " + kind
		}
		if v, ok := f.Value.(*value); ok && len(v.choices) > 1 {
			r.text += ": " + alternatives(v.choices)
		}
		if f.DefValue != "" && f.DefValue != "false" {
			r.text += " (default " + f.DefValue + ")"
		}
		rows = append(rows, r)
	})
	writeRows(b, title, rows)
}
