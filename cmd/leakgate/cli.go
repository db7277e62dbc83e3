package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leakgate/leakgate/internal/harness/bisect"
	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/harness/hostmemory"
	"github.com/leakgate/leakgate/internal/harness/lease"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes that all commands share. The other exit codes of a run are in
// package record.
const (
	exitOK    = 0
	exitUsage = 2
)

// These environment variables replace a flag or a setting of the program. Other
// flags have no variable: child processes inherit variables, so a variable for
// a run would also affect leakgate commands that the workload calls.
const (
	profileVariable = "LEAKGATE_PROFILE"
	waitVariable    = "LEAKGATE_WAIT"
	noColorVariable = "NO_COLOR"
)

// console is the input and output of a command: JSON and verdicts go to out,
// everything else goes to err.
type console struct {
	in      io.Reader
	out     io.Writer
	err     io.Writer
	getenv  func(string) (string, bool)
	environ []string // NAME=value
	// dial, if not nil, replaces all connections to the adb server.
	dial func(context.Context) (net.Conn, error)
	// github, if not nil, sends the requests to GitHub.
	github http.RoundTripper

	command *cobra.Command
	verb    string // such as "config print"

	quiet, verbose, noColor bool

	// configs are the configuration files that were read; messages do not show
	// their secrets.
	configs *[]*config.Config
}

// hide ensures that messages do not contain the values of variables that a file
// refers to: CI logs have many readers.
func (c console) hide(cfg *config.Config) {
	if cfg != nil && c.configs != nil {
		*c.configs = append(*c.configs, cfg)
	}
}

// redacted returns a message in which the hidden values are masked.
func (c console) redacted(message string) string {
	if c.configs == nil {
		return message
	}
	for _, cfg := range *c.configs {
		message = cfg.Redact(message)
	}
	return message
}

// variable returns the value of an environment variable, "" if it is not set.
func (c console) variable(name string) string {
	if c.getenv == nil {
		return ""
	}
	value, _ := c.getenv(name)
	return value
}

// colored reports whether text on a terminal may have colors
// (https://no-color.org).
func (c console) colored() bool {
	return !c.noColor && c.variable(noColorVariable) == "" && c.variable("TERM") != "dumb"
}

// problem prints an error or a warning.
func (c console) problem(format string, args ...any) {
	fmt.Fprintf(c.err, "%s: %s\n", c.name(), c.redacted(fmt.Sprintf(format, args...)))
}

// note prints progress or advice, which --quiet suppresses.
func (c console) note(format string, args ...any) {
	if !c.quiet {
		c.problem(format, args...)
	}
}

// detail prints a message that is shown only with --verbose.
func (c console) detail(format string, args ...any) {
	if c.verbose {
		c.problem(format, args...)
	}
}

// name returns the full name of the command for messages, such as "leakgate
// run".
func (c console) name() string { return strings.TrimSpace("leakgate " + c.verb) }

// usage prints an error in the command line and returns the exit code for such
// errors.
func (c console) usage(err error) int {
	c.problem("%v", err)
	if !c.quiet && c.command != nil {
		fmt.Fprintf(c.err, "Usage: %s\nRun `%s --help` for flags and examples.\n", c.command.UseLine(),
			c.command.CommandPath())
	}
	return exitUsage
}

// close rejects all further writes to standard output, unless something has
// already been written. It reports whether writes are now rejected.
func (c console) close() (untouched bool) {
	out, ok := c.out.(*trackingWriter)
	return ok && out.close()
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

// trackingWriter accepts writes until it is closed. It can be closed only
// before the first write: once a command has reported that nothing was written,
// no output may follow.
type trackingWriter struct {
	io.Writer
	state atomic.Int32
}

const (
	outputUntouched = iota
	outputUsed
	outputClosed
)

func (t *trackingWriter) Write(p []byte) (int, error) {
	if !t.state.CompareAndSwap(outputUntouched, outputUsed) && t.state.Load() == outputClosed {
		return 0, context.Canceled
	}
	return t.Writer.Write(p)
}

// close closes the writer if nothing has been written yet, and reports whether
// the writer is closed.
func (t *trackingWriter) close() bool {
	return t.state.CompareAndSwap(outputUntouched, outputClosed) || t.state.Load() == outputClosed
}

// exitCode is the error of a command that has already printed its errors.
type exitCode int

func (e exitCode) Error() string { return "exit code " + strconv.Itoa(int(e)) }

// run returns a function for a cobra command that calls do. do prints its own
// errors and returns an exit code.
func (c *console) run(do func(console, []string) int) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if c.quiet && c.verbose {
			return errors.New("--quiet and --verbose cannot be used together: use one of them")
		}
		if err := checkArguments(cmd, args); err != nil {
			return err
		}
		c.enter(cmd)
		began := time.Now()
		code := do(*c, args)
		c.detail("took %s, %s peak memory", time.Since(began).Round(time.Millisecond), text.Size(hostmemory.Peak()))
		if code != exitOK {
			return exitCode(code)
		}
		return nil
	}
}

func (c *console) enter(cmd *cobra.Command) {
	c.command = cmd
	c.verb = strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "leakgate"), " ")
}

// call runs one command line and returns the exit code.
func call(args []string, c console) int {
	c.out = &trackingWriter{Writer: c.out}
	c.configs = new([]*config.Config)
	root := newRoot(&c)
	root.SetArgs(append([]string{}, args...)) // nil would mean the arguments of this process
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	cmd, err := checkValues(root, args)
	if err == nil {
		cmd, err = root.ExecuteC()
	}
	if err == nil {
		return exitOK
	}
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	c.enter(cmd)
	return c.usage(err)
}

// The groups of commands in the help.
const (
	groupWatch   = "watch"
	groupGate    = "gate"
	groupDump    = "dump"
	groupRecords = "records"
	groupHost    = "host"
)

func newRoot(c *console) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "leakgate COMMAND",
		Short: "Finds memory leaks in Android apps under test.",
		Long: `leakgate finds memory leaks in Android apps under test: it watches the memory of
their processes, decides whether one leaks, and collects the evidence.`,
		Example: `  leakgate demo
  leakgate watch --process 'com.shop*' --for 2h
  leakgate analyze shop.hprof --mapping build/mapping.txt`,
		Annotations: manual{page: "README.md", environment: true}.annotations(),
		Args:        cobra.ArbitraryArgs, SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true,
	}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case version:
			return c.run(func(c console, _ []string) int { return printVersion(c, false) })(cmd, args)
		case len(args) > 0:
			return unknownCommand(cmd, args[0])
		}
		writeHelp(c.err, cmd)
		return exitCode(exitUsage)
	}
	root.Flags().BoolVar(&version, "version", false, "print the version")
	flags := root.PersistentFlags()
	flags.BoolP("help", "h", false, "show help for a command")
	flags.BoolVar(&c.noColor, "no-color", false, "do not color the output (also set by the variable NO_COLOR)")
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "print only verdicts and errors, no progress or advice")
	flags.BoolVarP(&c.verbose, "verbose", "v", false, "also print devices, phases and timings")
	root.AddGroup(
		&cobra.Group{ID: groupWatch, Title: "Watch an app:"},
		&cobra.Group{ID: groupGate, Title: "Judge a pull request:"},
		&cobra.Group{ID: groupDump, Title: "Read heap dumps:"},
		&cobra.Group{ID: groupRecords, Title: "Records and configuration:"},
		&cobra.Group{ID: groupHost, Title: "This computer:"},
	)
	root.AddCommand(
		runCommand(c), watchCommand(c), tripCommand(c), diagnoseCommand(c), markCommand(c),
		gateCommand(c), commentCommand(c), showCommand(c), baselineCommand(c), acceptCommand(c), bisectCommand(c),
		analyzeCommand(c), objectsCommand(c), pathsCommand(c), diffCommand(c), growthCommand(c), stripCommand(c),
		replayCommand(c), reportCommand(c), parseCommand(c), configCommand(c),
		demoCommand(c), doctorCommand(c), completionCommand(c), versionCommand(c),
	)
	root.SetHelpCommand(helpCommand(c))
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { writeHelp(cmd.OutOrStdout(), cmd) })
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.DisableDefaultCmd = true
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	completeChoices(root)
	return root
}

// helpCommand returns a replacement for cobra's help command, which has no exit
// code for an unknown command.
func helpCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", GroupID: groupHost, DisableFlagsInUseLine: true,
		Short:       "show help for a command",
		Long:        "Show help for leakgate or one of its commands, like --help.",
		Example:     "  leakgate help watch\n  leakgate help config print",
		Annotations: manual{exits: "0 the help was printed\n2 there is no such command"}.annotations(),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			of, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return commandNames(of), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(of, rest[0])
			}
			return of.Help()
		},
	}
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			names = append(names, sub.Name())
		}
	}
	return names
}

func unknownCommand(of *cobra.Command, name string) error {
	names := commandNames(of)
	if len(names) == 0 {
		return fmt.Errorf("%s has no command %q", of.CommandPath(), name)
	}
	if near := suggestion(name, names, ""); near != "" {
		return fmt.Errorf("unknown command %q%s", name, near)
	}
	if of.HasParent() {
		return fmt.Errorf("unknown command %q: want %s", name, alternatives(names))
	}
	return fmt.Errorf("unknown command %q: `leakgate help` lists the commands", name)
}

// suggestion returns a question that names the most similar word, or "" if no
// word is similar.
func suggestion(word string, words []string, prefix string) string {
	if near, ok := config.Nearest(word, words); ok {
		return fmt.Sprintf(" (did you mean %s%s?)", prefix, near)
	}
	return ""
}

// flagError rewords the errors of the flag parser.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		return unknownCommand(cmd, args[0]) // if the command is unknown, so are its flags
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(cmd.Flags(), e)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		cause := e.Unwrap()
		if e.GetFlag().Value.Type() == "bool" {
			cause = invalid(e.GetValue(), "true or false")
		}
		return fmt.Errorf("--%s: %w", e.GetFlag().Name, cause)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value: write --%[1]s %s", e.GetSpecifiedName(), e.GetFlag().Value.Type())
	}
	return err
}

func unknownFlag(fs *pflag.FlagSet, e *pflag.NotExistError) error {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	// pflag parses a word after a single dash as several one-letter flags.
	if short := e.GetSpecifiedShortnames(); short != "" {
		name, _, _ := strings.Cut(short, "=")
		return fmt.Errorf("unknown flag -%s%s", name, suggestion(name, names, "--"))
	}
	return fmt.Errorf("unknown flag --%s%s", e.GetSpecifiedName(), suggestion(e.GetSpecifiedName(), names, "--"))
}

// wantsToWait reports whether --wait or its environment variable is set.
func (c console) wantsToWait(flag bool) (bool, error) {
	text := c.variable(waitVariable)
	if flag || text == "" {
		return flag, nil
	}
	wait, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("environment %s: %w", waitVariable, invalid(text, "true or false"))
	}
	return wait, nil
}

// standInUsage is the help text of --stand-in.
const standInUsage = "allow a simulated phone whose clock runs faster, such as the one of demo --serve"

// allowsStandIn reports whether --stand-in or its environment variable is set.
func (c console) allowsStandIn(flag bool) (bool, error) {
	text := c.variable(config.StandInVariable)
	if flag || c.dial != nil || text == "" {
		return flag || c.dial != nil, nil
	}
	allowed, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("environment %s: %w", config.StandInVariable, invalid(text, "true or false"))
	}
	return allowed, nil
}

// warnOfVariables warns about environment variables that leakgate does not read
// but whose names look like a misspelling of one that it reads.
func (c console) warnOfVariables() {
	for _, slip := range config.Misspellings(c.environ, profileVariable, waitVariable, lease.FolderVariable,
		bisect.RunsVariable, artifactVariable, acceptedVariable, ownTokenVariable) {
		c.problem("warning: the variable %s has no effect; did you mean %s?", text.Printable(slip.Written), slip.Meant)
	}
}

// withoutArguments rejects positional arguments for commands that take only
// flags.
func withoutArguments(args []string, flag string) error {
	switch {
	case len(args) == 0:
		return nil
	case flag != "":
		return fmt.Errorf("unexpected argument %q: name a process with --%s %s", args[0], flag, args[0])
	}
	return fmt.Errorf("unexpected argument %q", args[0])
}
