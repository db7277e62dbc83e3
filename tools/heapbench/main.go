// Command heapbench compares leakgate with other programs that read heap dumps.
// It measures whole processes, in turn: wall time, processor time and peak
// memory. It prints the tables of docs/performance.md and checks their bars:
//
//	go run ./heapbench                                     # everything: a quarter of an hour
//	go run ./heapbench -only '^mid ' -rounds 1             # one dump
//	go run ./heapbench -sizes small -peers none            # a quick check
//	go run ./heapbench -check -write ../docs/performance.md   # make bench-heap
//
// It generates the large dumps from a seed with its own Java program, and uses
// the Android dumps of the recorded data. It installs the other programs as
// packages. The generated dumps and the programs are kept in a directory. A
// program that cannot be installed is skipped with a message, and comparisons
// with it are open: only a measurement can meet a bar. Run heapbench in the
// directory of its module, tools.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options holds the command-line options.
type options struct {
	rounds int
	// only selects rows by "DUMP TOOL"; nil selects all.
	only  *regexp.Regexp
	small bool
	check bool
	write string
	cache string
	// peers is a directory with installed programs, or "none".
	peers    string
	leakgate string
	testdata string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("heapbench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.rounds, "rounds", 3, "number of measurement rounds; small dumps are measured at least ten times")
	only := flags.String("only", "", "`regex` matching the rows to measure; their names are \"DUMP TOOL\"")
	sizes := flags.String("sizes", "full", "sizes of the generated dumps: full or small")
	flags.BoolVar(&o.check, "check", false, "exit with 1 if a bar is missed")
	flags.StringVar(&o.write, "write", "", "`page` to write the tables into, between its markers")
	flags.StringVar(&o.cache, "cache", "",
		"`directory` for dumps and programs (default leakgate/heapbench in the user's cache)")
	flags.StringVar(&o.peers, "peers", "",
		"`directory` of peers that are installed already; none: measure without peers")
	flags.StringVar(&o.leakgate, "leakgate", "", "`program` to measure (default: built from the module above)")
	flags.StringVar(&o.testdata, "testdata", testdata(), "`directory` of the recorded data")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var errs []error
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	if o.rounds < 1 {
		errs = append(errs, fmt.Errorf("invalid -rounds %d: want at least 1", o.rounds))
	}
	if *sizes != "full" && *sizes != "small" {
		errs = append(errs, fmt.Errorf("invalid -sizes %q: want full or small", *sizes))
	}
	o.small = *sizes == "small"
	if o.write != "" && (*only != "" || o.small || o.peers == "none") {
		errs = append(errs,
			errors.New("-write needs all figures: remove either -write or -only, -sizes small and -peers none"))
	}
	var err error
	if *only != "" {
		if o.only, err = regexp.Compile(*only); err != nil {
			errs = append(errs, fmt.Errorf("invalid -only: %w", err))
		}
	}
	if o.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			errs = append(errs, fmt.Errorf("find a directory for dumps: %w; name one with -cache", err))
		}
		o.cache = filepath.Join(dir, "leakgate", "heapbench")
	}
	// The path must be absolute, because the JVM that writes a dump has its own
	// working directory.
	if o.cache, err = filepath.Abs(o.cache); err != nil {
		errs = append(errs, fmt.Errorf("invalid -cache: %w", err))
	}
	return o, errors.Join(errs...)
}

// testdata returns the path of the recorded data, relative to the directory of
// this module.
func testdata() string {
	if dir := os.Getenv("LEAKGATE_TESTDATA"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "shared", "testdata")
}

// run returns the exit code: 0, 1 if a bar is missed or the measurement cannot
// continue, 2 for invalid arguments, 130 when interrupted.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "heapbench: %v\n", err)
		return 2
	}
	p := newPlan(o)
	if len(p.jobs) == 0 {
		fmt.Fprintf(stderr, "heapbench: no row matches %v\n", o.only)
		return 2
	}
	began := time.Now()
	err = p.carryOut(ctx, o, stderr)
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "heapbench: interrupted; nothing was written")
		return 130
	}
	if err != nil {
		fmt.Fprintf(stderr, "heapbench: %v\n", err)
		return 1
	}
	text := p.markdown(machine())
	fmt.Fprint(stdout, text)
	fmt.Fprintf(stderr, "heapbench: took %v\n", time.Since(began).Round(time.Second))
	if o.write != "" {
		if err := writePage(o.write, text); err != nil {
			fmt.Fprintf(stderr, "heapbench: %v\n", err)
			return 1
		}
	}
	return report(p.verdicts(), o.check, stderr)
}

// report prints the states of the bars. It returns 1 if a bar is missed and
// -check is set, otherwise 0.
func report(verdicts []verdict, check bool, stderr io.Writer) int {
	count := map[state]int{}
	for _, v := range verdicts {
		count[v.state]++
		fmt.Fprintf(stderr, "heapbench: %-6s  %s: %s\n", v.state, v.bar, v.measured)
	}
	fmt.Fprintf(stderr, "heapbench: bars: %d met, %d missed, %d open\n", count[met], count[missed], count[open])
	if check && count[missed] > 0 {
		return 1
	}
	return 0
}
