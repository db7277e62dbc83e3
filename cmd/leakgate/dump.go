package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/analysis/heap"
	"github.com/leakgate/leakgate/analysis/hprof"
	"github.com/leakgate/leakgate/analysis/spool"
	"github.com/leakgate/leakgate/harness/config"
	"github.com/leakgate/leakgate/harness/monitor"
)

// exitUnread is the exit code for a dump or log that could not be analysed.
const exitUnread = 6

// dumpFlags are those of every verb that reads a heap dump.
type dumpFlags struct {
	verb           string
	asJSON         bool
	partial        bool
	memory, spool  size
	phasesFile     string
	phases         []phase
	objects, edges int64
}

// phase is one line of the file of --phases.
type phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	// RSS is the most memory that the program had resident until its end.
	RSS   int64 `json:"rss_bytes,omitempty"`
	began time.Time
}

func (f *dumpFlags) declare(fs *flag.FlagSet) {
	fs.BoolVar(&f.asJSON, "json", false, "print JSON on stdout and nothing else there")
	fs.BoolVar(&f.partial, "partial", false, "analyse what can be read of a damaged dump")
	fs.Var(&f.memory, "memory", "the `SIZE` that the graph may take in memory, such as 4GB; what is free by default")
	fs.Var(&f.spool, "spool-cap", "the `SIZE` up to which standard input or a packed dump is kept in a temporary file; 64GB by default")
	fs.StringVar(&f.phasesFile, "phases", "", "write the time and memory of each phase to this `FILE`, as JSON")
}

// size is a flag of bytes.
type size int64

func (s *size) String() string { return "" }

func (s *size) Set(text string) error {
	n, err := config.ParseSize(text)
	if err != nil {
		return err
	}
	*s = size(n)
	return nil
}

// work is what a verb does with an open dump.
type work func(ctx context.Context, file *spool.File, o analysis.Options) error

// run opens a dump and works on it. The work is left behind when the user ends it:
// the program exits, and what it had is the system's again.
func (f *dumpFlags) run(c console, path string, do work) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	done := make(chan error, 1)
	bar := newBar(c.err)
	go func() { done <- f.open(ctx, c, path, bar, do) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	bar.close()
	if err == nil {
		err = f.writePhases()
	}
	return f.exit(c, path, err)
}

func (f *dumpFlags) open(ctx context.Context, c console, path string, bar *bar, do work) error {
	f.enter("open")
	bar.phase("unpacking")
	file, err := spool.Open(ctx, path, c.in, spool.Options{Cap: int64(f.spool), Progress: bar.progress})
	if err != nil {
		return unopened{err}
	}
	defer file.Close()
	if file.Damage != nil && !f.partial {
		return fmt.Errorf("%w; --partial analyses what was unpacked", file.Damage)
	}
	memory := int64(f.memory)
	if memory == 0 {
		memory = freeMemory()
	}
	o := analysis.Options{
		Partial: f.partial, Memory: memory, Progress: bar.progress, Cut: errors.Join(file.Truncated, file.Damage),
		Phase: func(name string) {
			f.enter(name)
			bar.phase(name)
		},
	}
	err = do(ctx, file, o)
	f.enter("")
	return err
}

// unopened is an error of a file that is not there, or not to be opened.
type unopened struct{ error }

func (u unopened) Unwrap() error { return u.error }

// enter ends a phase and begins the next.
func (f *dumpFlags) enter(name string) {
	now := time.Now()
	if n := len(f.phases); n > 0 && f.phases[n-1].RSS == 0 {
		p := &f.phases[n-1]
		p.Seconds, p.RSS = now.Sub(p.began).Seconds(), peakMemory()
	}
	if name != "" {
		f.phases = append(f.phases, phase{Name: name, began: now})
	}
}

func (f *dumpFlags) writePhases() error {
	if f.phasesFile == "" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"objects": f.objects, "edges": f.edges, "phases": f.phases}, "", "  ")
	if err == nil {
		err = os.WriteFile(f.phasesFile, append(text, '\n'), 0o644)
	}
	if err != nil {
		return unopened{fmt.Errorf("write phases: %w", err)}
	}
	return nil
}

// exit tells an error and gives the exit code.
func (f *dumpFlags) exit(c console, path string, err error) int {
	tell := func(format string, args ...any) {
		fmt.Fprintf(c.err, "leakgate %s: %s\n", f.verb, printable(fmt.Sprintf(format, args...)))
	}
	var memory *heap.MemoryError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		tell("interrupted; nothing was written")
		return monitor.ExitInterrupted
	case errors.Is(err, spool.ErrCap):
		tell("%v; --spool-cap allows more", err)
		return exitUnread
	case errors.As(err, new(unopened)) && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)):
		tell("%v", err)
		return exitUsage
	case errors.As(err, &memory):
		tell("%s: %v; close other programs, take a computer with more, or allow more with --memory", path, err)
	case errors.As(err, new(*hprof.DamageError)):
		tell("%s: %v; --partial analyses what can be read of it", path, err)
	case errors.As(err, new(unopened)):
		tell("%v", err)
	default:
		tell("%s: %v", path, err)
	}
	return exitUnread
}

// printJSON writes the machine form.
func printJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}
