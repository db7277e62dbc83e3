package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leakgate/leakgate/internal/harness/config"
)

// The exit codes that verbs share; those of a run are monitor's.
const (
	exitOK    = 0
	exitUsage = 2
)

// console is what a verb reads and writes: machine forms and verdicts on out,
// everything else on err.
type console struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) (string, bool)
	// dial, where not nil, is the only way to the adb server.
	dial func(context.Context) (net.Conn, error)
	// variables are the flags that variables of the environment have set.
	variables []string
}

// named is a flag as the user has given it: itself, or the variable that stands in for it.
func (c console) named(flagName string) string {
	if slices.Contains(c.variables, flagName) {
		return environmentName(flagName)
	}
	return "--" + flagName
}

// shortest is the length from which on a value in a message is taken for that of a flag.
const shortest = 3

// blamed tells which of the flags that a message is about come from variables of the
// environment: nobody finds them on the command line.
func (c console) blamed(message string) string {
	text := ""
	for _, name := range c.variables {
		value, _ := c.getenv(environmentName(name))
		told := regexp.MustCompile("--" + regexp.QuoteMeta(name) + `(?:[^a-z-]|$)`).MatchString(message)
		if told || len(value) >= shortest && strings.Contains(message, value) {
			text += fmt.Sprintf("; --%s comes from the variable %s", name, environmentName(name))
		}
	}
	return text
}

// trackingWriter remembers whether anything was written.
type trackingWriter struct {
	io.Writer
	bytes atomic.Bool
}

func (t *trackingWriter) Write(p []byte) (int, error) {
	t.bytes.Store(true)
	return t.Writer.Write(p)
}

// wrote reports whether anything was written to standard output.
func (c console) wrote() bool {
	out, ok := c.out.(*trackingWriter)
	return ok && out.bytes.Load()
}

// onTerminal reports whether standard output is a terminal.
func (c console) onTerminal() bool {
	out, ok := c.out.(*trackingWriter)
	if !ok {
		return false
	}
	_, ok = out.Writer.(*sanitizer)
	return ok
}

// verb is one word of the command line.
type verb struct {
	name, args, summary, help, example string
	// flags declares the verb's flags and gives the function that does the work.
	flags func(*flag.FlagSet) func(console, []string) int
}

func verbs() []verb {
	return []verb{runVerb(), watchVerb(), demoVerb(), diagnoseVerb(), markVerb(), reportVerb(), replayVerb(), analyzeVerb(), objectsVerb(), pathsVerb(), diffVerb(), growthVerb(), stripVerb(), parseVerb(), doctorVerb(), configVerb(), versionVerb()}
}

// call runs one command line and gives the exit code.
func call(args []string, c console) int {
	c.out = &trackingWriter{Writer: c.out}
	if len(args) == 0 {
		usage(c.err)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		if len(args) > 1 {
			return callVerb(args[1], []string{"--help"}, c)
		}
		usage(c.out)
		return exitOK
	case "--version", "-version":
		return callVerb("version", args[1:], c)
	}
	return callVerb(args[0], args[1:], c)
}

func callVerb(name string, args []string, c console) int {
	var names []string
	for _, v := range verbs() {
		if v.name == name {
			return v.call(args, c)
		}
		names = append(names, v.name)
	}
	fmt.Fprintf(c.err, "leakgate: unknown verb %q%s; `leakgate help` lists the verbs\n", name, meant(name, names, ""))
	return exitUsage
}

// meant suggests the nearest word, or nothing.
func meant(word string, words []string, prefix string) string {
	if near, ok := config.Nearest(word, words); ok {
		return fmt.Sprintf(" (did you mean %s%s?)", prefix, near)
	}
	return ""
}

func usage(w io.Writer) {
	fmt.Fprint(w, "leakgate finds memory leaks in Android apps while tests run.\n\nusage: leakgate VERB [flags]\n\n")
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %-9s %s\n", v.name, v.summary)
	}
	fmt.Fprint(w, "\n`leakgate VERB --help` tells more, with an example. `leakgate demo` needs no device.\n")
}

func (v verb) call(args []string, c console) int {
	fs := flag.NewFlagSet(v.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	work := v.flags(fs)
	rest, err := parseFlags(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		v.tell(c.out, fs)
		return exitOK
	}
	if err == nil {
		c.variables, err = fromEnvironment(fs, c.getenv)
	}
	if err != nil {
		return v.wrong(c, err)
	}
	return work(c, rest)
}

// wrong tells a usage error.
func (v verb) wrong(c console, err error) int {
	fmt.Fprintf(c.err, "leakgate %s: %v%s\nusage: leakgate %s %s; `leakgate %s --help` tells more\n", v.name, err, c.blamed(err.Error()), v.name, v.args, v.name)
	return exitUsage
}

func (v verb) tell(w io.Writer, fs *flag.FlagSet) {
	fmt.Fprintf(w, "usage: leakgate %s %s\n\n%s\n\n", v.name, v.args, v.help)
	fs.VisitAll(func(f *flag.Flag) {
		kind, text := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  --%-18s %s (%s)\n", strings.TrimSpace(f.Name+" "+kind), text, environmentName(f.Name))
	})
	fmt.Fprintf(w, "\nexample:\n  %s\n", v.example)
}

// single is a flag of one value while the command line is read.
type single struct {
	flag.Value
	name  string
	given *string
	twice error
}

func (s *single) Set(text string) error {
	if s.given != nil {
		s.twice = fmt.Errorf("--%s is given twice, as %q and as %q; it takes one value", s.name, *s.given, text)
		return s.twice
	}
	s.given = &text
	return s.Value.Set(text)
}

// onlyOnce lets the flags of one value refuse a second one, until done is called. It gives the
// first that has.
func onlyOnce(fs *flag.FlagSet) (done func() error) {
	var all []*single
	fs.VisitAll(func(f *flag.Flag) {
		_, several := f.Value.(*list)
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); several || ok && b.IsBoolFlag() {
			return
		}
		s := &single{Value: f.Value, name: f.Name}
		f.Value, all = s, append(all, s)
	})
	return func() error {
		var err error
		for _, s := range all {
			fs.Lookup(s.name).Value = s.Value
			err = cmp.Or(err, s.twice)
		}
		return err
	}
}

// parseFlags parses flags wherever they stand among the arguments.
func parseFlags(fs *flag.FlagSet, args []string) ([]string, error) {
	done := onlyOnce(fs)
	rest, err := parseAnywhere(fs, args)
	if twice := done(); twice != nil {
		return nil, twice
	}
	if err != nil {
		return nil, flagError(fs, err)
	}
	return rest, nil
}

func parseAnywhere(fs *flag.FlagSet, args []string) ([]string, error) {
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if fs.NArg() == 0 {
			return rest, nil
		}
		// Parse stops at the first argument that is no flag, or after "--".
		done := len(args) - fs.NArg()
		if done > 0 && args[done-1] == "--" {
			return append(rest, fs.Args()...), nil
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

// flagError says what package flag says, in the words of the command line.
func flagError(fs *flag.FlagSet, err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if invalid := badValue.FindStringSubmatch(err.Error()); invalid != nil {
		return fmt.Errorf("--%s: %s is no value of it%s", invalid[2], invalid[1], wanted(fs.Lookup(invalid[2])))
	}
	name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !ok {
		return errors.New(strings.NewReplacer("for flag -", "for flag --", "flag needs an argument: -", "flag needs an argument: --").Replace(err.Error()))
	}
	name = strings.TrimPrefix(name, "-")
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return fmt.Errorf("unknown flag --%s%s", name, meant(name, names, "--"))
}

// badValue is what package flag says of a number, a duration or a boolean that it cannot
// read, with the value and the flag. It says as little of those as fs.Set does.
var badValue = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([^ ]+): (?:parse error|value out of range)$`)

// wanted says what to write as the value of a flag.
func wanted(f *flag.Flag) string {
	getter, ok := f.Value.(flag.Getter)
	if !ok {
		return ""
	}
	switch getter.Get().(type) {
	case bool:
		return "; write true or false"
	case time.Duration:
		return "; write a time with its unit, such as 90s or 5m"
	case float64:
		return "; write a number"
	case int, uint, int64, uint64:
		return "; write a whole number, such as 30"
	}
	return ""
}

// environmentName is the variable that stands in for a flag.
func environmentName(flagName string) string {
	return "LEAKGATE_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// fromEnvironment sets the flags that the command line leaves out, and names those that it
// has set.
func fromEnvironment(fs *flag.FlagSet, getenv func(string) (string, bool)) (variables []string, err error) {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	fs.VisitAll(func(f *flag.Flag) {
		value, ok := getenv(environmentName(f.Name))
		if given[f.Name] || !ok || err != nil {
			return
		}
		if serr := fs.Set(f.Name, value); serr != nil {
			err = fmt.Errorf("environment variable %s: %q: %w%s", environmentName(f.Name), value, serr, wanted(f))
			return
		}
		variables = append(variables, f.Name)
	})
	return variables, err
}

// list is a flag that may be given several times, or once with commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			*l = append(*l, word)
		}
	}
	return nil
}
