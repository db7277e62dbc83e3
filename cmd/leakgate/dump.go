package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/harness/hostmemory"
	plans "github.com/leakgate/leakgate/internal/harness/plan"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/pflag"
)

// exitUnread is the exit code for a dump or log that could not be analyzed.
const exitUnread = 6

// dumpFlags are the flags of every command that reads a heap dump.
type dumpFlags struct {
	asJSON         bool
	partial        bool
	memory, spool  int64
	mapping, model string
	phasesFile     string
	phases         []phase
	shown          int // number of phases printed so far for --verbose
	objects, edges int64
}

// phase is one entry of the file given by --phases.
type phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	// RSS is the peak resident memory of the program up to the end of the
	// phase.
	RSS   int64 `json:"rss_bytes,omitempty"`
	began time.Time
	ended bool
}

// phases is the content of the file given by --phases.
type phases struct {
	Objects int64   `json:"objects,omitempty"`
	Edges   int64   `json:"edges,omitempty"`
	Phases  []phase `json:"phases"`
}

// spoolUsage is the help text of --spool-cap.
const spoolUsage = "largest temporary file for standard input or a compressed dump (default 64GB)"

func (f *dumpFlags) declare(fs *pflag.FlagSet) {
	fs.BoolVar(&f.asJSON, "json", false, jsonUsage)
	fs.BoolVar(&f.partial, "partial", false, "analyze the readable part of a damaged dump")
	fs.Var(size(&f.memory), "memory", "memory for the object graph, such as 4GB; by default all free memory")
	fs.Var(size(&f.spool), "spool-cap", spoolUsage)
	fs.Var(word(&f.mapping, "FILE"), "mapping", mappingUsage)
	fs.Var(choice(&f.model, "MODEL", "leakgate", "ahat"), "size-model",
		"how to compute retained sizes: leakgate (default), or ahat, which ignores references to classes and "+
			"class loaders")
	fs.Var(word(&f.phasesFile, "FILE"), "phases", "write the time and memory of each phase to FILE, as JSON")
}

// work is the part of a command that processes an open dump.
type work func(ctx context.Context, file *spool.File, o analysis.Options) error

// run opens a dump and calls do with it; Ctrl-C and SIGTERM cancel the context
// of do.
func (f *dumpFlags) run(c console, path string, do work) int {
	ctx, stop := untilInterrupt()
	defer stop()
	return f.runIn(ctx, c, path, do)
}

// untilInterrupt returns a context that is canceled by Ctrl-C or SIGTERM. A
// command that reads several dumps uses one context for all of them, so that no
// signal is missed between two dumps.
func untilInterrupt() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// runIn is like run, but the caller provides the context. When the user
// interrupts the command, the work is abandoned: the program exits and the
// system reclaims its memory.
func (f *dumpFlags) runIn(ctx context.Context, c console, path string, do work) int {
	if err := f.tryPhases(); err != nil {
		return f.exit(c, path, err)
	}
	done := make(chan error, 1)
	bar := newBar(c)
	go func() { done <- f.open(ctx, c, path, bar, do) }()
	err := untilDone(ctx, c, done)
	bar.close()
	if err == nil {
		for _, p := range f.phases[f.shown:] {
			c.detail("%s: %.1f s, %s peak memory", p.Name, p.Seconds, text.Size(p.RSS))
		}
		f.shown = len(f.phases)
		err = f.writePhases()
	}
	return f.exit(c, path, err)
}

// untilDone waits for work that may print. After an interrupt, work that has
// not started to print cannot print any more, and work that has started gets a
// short time to finish.
func untilDone(ctx context.Context, c console, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if c.close() {
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-time.After(messageTimeout):
		return errCutShort
	}
}

// errCutShort is the error of a command that was interrupted after it had
// started to print.
var errCutShort = errors.New("interrupted while printing")

func (f *dumpFlags) open(ctx context.Context, c console, path string, bar *bar, do work) error {
	f.enter("open")
	bar.phase("read the input")
	file, err := spool.Open(ctx, path, c.in, spool.Options{Cap: f.spool, Progress: bar.progress})
	if err != nil {
		return outside{err}
	}
	defer file.Close()
	if file.Damage != nil && !f.partial {
		return fmt.Errorf("%w; --partial analyzes what was unpacked", file.Damage)
	}
	if spool.IsPerfetto(file, file.Size()) {
		return unusable{errPerfetto}
	}
	o := analysis.Options{
		Partial: f.partial, SizeModel: f.model, Memory: cmp.Or(f.memory, hostmemory.Free()), Progress: bar.progress,
		Cut: errors.Join(file.Truncated, file.Damage),
		Phase: func(name string) {
			f.enter(name)
			// Release the garbage that was left by reading the dump, so that it
			// does not add to the memory use of the next phase.
			if name == "dominators" {
				debug.FreeOSMemory()
			}
			bar.phase(name)
		},
	}
	if f.mapping != "" {
		f.enter("read the mapping")
		bar.phase("read the mapping")
		if o.Mapping, err = readMapping(f.mapping); err != nil {
			return err
		}
	}
	err = do(ctx, file, o)
	f.enter("")
	return err
}

var errPerfetto = errors.New("this is a Perfetto trace, but leakgate reads heap dumps: take one with `adb shell am " +
	"dumpheap -g PROCESS FILE`")

// checkFiles checks all files before the first of them is read, because reading
// may take minutes. All other errors of a file are reported when it is opened.
func checkFiles(paths ...string) error {
	for _, path := range paths {
		if path == "" || path == "-" {
			continue
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("open %s: %w", text.Printable(path), fs.ErrNotExist)
		}
	}
	return nil
}

// sameFile reports whether two names refer to the same file, or both to
// standard input.
func sameFile(a, b string) bool {
	if a == "-" || b == "-" {
		return a == b
	}
	x, err := os.Stat(a)
	if err != nil {
		return a == b
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// wrongOrder returns an error if the arguments are in the wrong order, which
// means that the first is not a file and a later one is.
func wrongOrder(args []string, what string) error {
	if _, err := os.Stat(args[0]); args[0] == "-" || err == nil {
		return nil
	}
	for _, arg := range args[1:] {
		if info, err := os.Stat(arg); err == nil && !info.IsDir() {
			return fmt.Errorf("%s does not exist, but the file %s does; name the heap dump first, then %s",
				text.Printable(args[0]), text.Printable(arg), what)
		}
	}
	return nil
}

// readMapping reads a mapping.txt. Its errors count as usage errors, because
// the user has to correct them.
func readMapping(path string) (*analysis.Mapping, error) {
	m, err := plans.Mapping(path)
	if err != nil {
		return nil, unusable{err}
	}
	return m, nil
}

// unusable is an error that has the exit code of a usage error.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

// outside is an error that does not concern the content of the dump: a file
// that cannot be opened or written.
type outside struct{ error }

func (o outside) Unwrap() error { return o.error }

// printed marks an output error as one that does not concern the dump.
func printed(err error) error {
	if err == nil {
		return nil
	}
	return outside{err}
}

// enter ends a phase and begins the next.
func (f *dumpFlags) enter(name string) {
	now := time.Now()
	if n := len(f.phases); n > 0 && !f.phases[n-1].ended {
		p := &f.phases[n-1]
		p.Seconds, p.RSS, p.ended = now.Sub(p.began).Seconds(), hostmemory.Peak(), true
	}
	if name != "" {
		f.phases = append(f.phases, phase{Name: name, began: now})
	}
}

// tryPhases checks that the file for the phases can be written, before the
// program spends minutes on reading a dump.
func (f *dumpFlags) tryPhases() error {
	if f.phasesFile == "" {
		return nil
	}
	_, err := os.Stat(f.phasesFile)
	absent := errors.Is(err, fs.ErrNotExist)
	file, err := os.OpenFile(f.phasesFile, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return unusable{fmt.Errorf("write phases: %w", err)}
	}
	if err := file.Close(); err != nil {
		return outside{fmt.Errorf("write phases: %w", err)}
	}
	if absent {
		return os.Remove(f.phasesFile)
	}
	return nil
}

func (f *dumpFlags) writePhases() error {
	if f.phasesFile == "" {
		return nil
	}
	text, err := json.MarshalIndent(phases{f.objects, f.edges, f.phases}, "", "  ")
	if err == nil {
		err = os.WriteFile(f.phasesFile, append(text, '\n'), 0o644)
	}
	if err != nil {
		return outside{fmt.Errorf("write phases: %w", err)}
	}
	return nil
}

// exit prints an error and returns the exit code.
func (f *dumpFlags) exit(c console, path string, err error) int {
	if path == "-" {
		path = "standard input"
	}
	tell := func(format string, args ...any) {
		c.problem("%s", text.Printable(fmt.Sprintf(format, args...)))
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errLeaks):
		tell("%v", err)
		return record.ExitLeak
	case errors.As(err, new(unjudged)):
		tell("%s: %v", path, err)
		return record.ExitInconclusive
	case errors.Is(err, errCutShort):
		tell("interrupted; the output is incomplete")
		return record.ExitInterrupted
	case errors.Is(err, context.Canceled):
		tell("interrupted; nothing was written")
		return record.ExitInterrupted
	case errors.As(err, new(*analysis.AbsentError)):
		tell("%s: %v", path, err)
		return exitUsage
	case errors.As(err, new(unusable)):
		tell("%v", err)
		return exitUsage
	case errors.As(err, new(outside)):
		tell("%v%s", err, emptyDumpHint(path))
		for _, usage := range []error{fs.ErrNotExist, fs.ErrPermission, spool.ErrNoName, spool.ErrFolder} {
			if errors.Is(err, usage) {
				return exitUsage
			}
		}
	default:
		tell("%s: %v%s", path, err, f.remedy(c, err))
	}
	return exitUnread
}

// emptyDumpHint returns the advice for an empty file: am dumpheap returns
// before it has written anything.
func emptyDumpHint(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > 0 {
		return ""
	}
	return "; copy it again when the app has finished writing it"
}

// remedy returns advice about an error in reading a dump, or "" if there is
// none.
func (f *dumpFlags) remedy(c console, err error) string {
	memory, tooLarge := errors.AsType[*analysis.MemoryError](err)
	damage, damaged := errors.AsType[*analysis.DamageError](err)
	switch {
	case errors.Is(err, analysis.ErrNoHeap):
		return "; copy it again when the app has finished writing it"
	case tooLarge && f.memory > 0 && memory.Limit == f.memory && memory.What != "":
		return "; --memory allows more"
	case tooLarge && f.memory > 0 && memory.Limit == f.memory:
		return "; --memory allows more" + cheaper(c)
	case tooLarge:
		return "; close other programs, use a computer with more memory, or try again with --memory" + cheaper(c)
	case damaged && damage.Record == "the header":
		return "; a heap dump is a file written by `am dumpheap` or jmap"
	case damaged && !f.partial:
		return "; --partial analyzes the readable part"
	}
	return ""
}

// cheaper returns advice that names an alternative with low memory use, or ""
// if the command has no such alternative.
func cheaper(c console) string {
	if c.verb != "analyze" {
		return ""
	}
	return "; --only histogram needs little memory"
}

// printJSON prints a value as JSON.
func printJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}
