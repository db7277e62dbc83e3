// Command calibrate measures the policies of the detector on simulated
// processes: how often each kind of process without a leak raises an alarm, and
// how soon a leak raises one. It prints the tables of docs/detector.md:
//
//	go run ./internal/calibrate                                       # all tables: minutes
//	go run ./internal/calibrate -tables alarms -only '^AR' -runs 200  # a part
//	go run ./internal/calibrate -check -write docs/detector.md        # make calibrate
//
// Every run has its own seed, derived from the names of its table and row. The
// figures therefore depend neither on the number of cores nor on what else is
// measured.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options holds the values of the command-line flags.
type options struct {
	// runs is the number of processes per row of alarms; detections is the
	// number per row of leaks.
	runs, detections int
	// nights is the number of runs for each row of the table "nights".
	nights int
	seed   uint64
	// only selects rows, and tables selects tables; empty means all.
	only   *regexp.Regexp
	tables []string
	check  bool
	write  string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("calibrate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.runs, "runs", 2000, "simulated processes per row without a leak")
	flags.IntVar(&o.detections, "detections", 300, "simulated processes per row with a leak")
	flags.IntVar(&o.nights, "nights", 100, "simulated runs for each row of the table \"nights\"")
	flags.Uint64Var(&o.seed, "seed", 20261122, "first random seed; the constants were chosen with other seeds")
	only := flags.String("only", "", "`regex` matching the names of the rows to measure")
	tables := flags.String("tables", "", "`names` of the tables to measure, separated by commas: "+
		strings.Join(tableNames(), ","))
	flags.BoolVar(&o.check, "check", false, "compare with the bars; exit with 1 if one is missed")
	flags.StringVar(&o.write, "write", "", "`page` to write the tables into, between its markers")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var errs []error
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	if o.runs < 1 || o.detections < 1 {
		errs = append(errs, errors.New("-runs and -detections must be at least 1"))
	}
	if *only != "" {
		var err error
		if o.only, err = regexp.Compile(*only); err != nil {
			errs = append(errs, fmt.Errorf("parse -only: %w", err))
		}
		if o.write != "" {
			errs = append(errs, errors.New("-write needs entire tables: omit -only"))
		}
	}
	if *tables != "" {
		o.tables = strings.Split(*tables, ",")
	}
	for _, name := range o.tables {
		if !slices.Contains(tableNames(), name) {
			errs = append(errs, fmt.Errorf("unknown table %q: want %s", name, strings.Join(tableNames(), ", ")))
		}
	}
	return o, errors.Join(errs...)
}

// run returns the exit code: 0, 1 if a bar is missed or the page cannot be
// written, 2 for bad arguments.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "calibrate: %v\n", err)
		return 2
	}
	tables := chosen(o)
	if len(tables) == 0 {
		fmt.Fprintf(stderr, "calibrate: find rows: no row of these tables matches %v\n", o.only)
		return 2
	}
	began := time.Now()
	measure(tables, o.seed, runtime.GOMAXPROCS(0), stderr)
	var b bars
	texts := map[string]string{}
	for _, t := range tables {
		texts[t.name] = text.WrapMarkdown(t.markdown(&b), pageColumns)
		fmt.Fprintf(stdout, "### %s\n\n%s\n", t.name, texts[t.name])
	}
	fmt.Fprintf(stderr, "calibrate: took %v\n", time.Since(began).Round(time.Second))
	code := 0
	if o.check {
		code = report(b.missed, stderr)
	}
	if o.write != "" {
		if err := writePage(o.write, texts); err != nil {
			fmt.Fprintf(stderr, "calibrate: %v\n", err)
			return 1
		}
	}
	return code
}

func report(missed []string, stderr io.Writer) int {
	for _, m := range missed {
		fmt.Fprintf(stderr, "calibrate: missed: %s\n", m)
	}
	if len(missed) == 0 {
		fmt.Fprintln(stderr, "calibrate: all bars are met")
		return 0
	}
	fmt.Fprintf(stderr, "calibrate: %d bars are missed\n", len(missed))
	return 1
}

// writePage replaces the tables of a page.
func writePage(path string, texts map[string]string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	was := page
	for name, s := range texts {
		if page, err = replace(page, name, s); err != nil {
			return fmt.Errorf("write tables into %s: %w", path, err)
		}
	}
	if bytes.Equal(page, was) {
		return nil
	}
	if err := os.WriteFile(path, page, 0o644); err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	return nil
}
