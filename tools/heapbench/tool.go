package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/leakgate/leakgate/internal/jars"
)

// The names of the tools.
const (
	ours     = "leakgate"
	reading  = "leakgate, reading alone"
	tracing  = "leakgate, leaks"
	growing  = "leakgate, growth"
	analyzer = "hprof-analyzer"
	slurp    = "hprof-slurp"
	shark    = "Shark"
)

// readingAlone contains the options for a run that only reads a dump and counts
// its objects.
var readingAlone = []string{"--only", "histogram"}

// leakingClass is the class that leaks in the dumps that are generated here
// (HeapMaker.java).
const leakingClass = "HeapMaker$Screen"

// tool is a program that reads heap dumps.
type tool struct {
	name string
	// version is the required release of a peer; it is empty for leakgate.
	version string
	// program is the path of the program and its first arguments, set by get.
	program []string
	// args returns the arguments for a dump. The tool writes its output files
	// to the directory scratch.
	args func(dump, scratch string) []string
	find finder
	// missing is the reason why the tool is missing, or "" if it exists.
	missing string
}

// finder returns the path of a tool's program and its first arguments, and
// installs the program if necessary.
type finder func(ctx context.Context, c cache, o options, log io.Writer) ([]string, error)

// once returns a finder that searches only once and can be shared by several
// tools.
func once(find finder) finder {
	var program []string
	var err error
	looked := false
	return func(ctx context.Context, c cache, o options, log io.Writer) ([]string, error) {
		if !looked {
			program, err = find(ctx, c, o, log)
			looked = true
		}
		return program, err
	}
}

// get finds the program of a tool, or installs it.
func (t *tool) get(ctx context.Context, c cache, o options, log io.Writer) error {
	var err error
	t.program, err = t.find(ctx, c, o, log)
	return err
}

// command returns the command that runs a tool on a dump. Only leakgate writes
// the phases file.
func (t *tool) command(d *dump, scratch, phases string) command {
	argv := append(append([]string{}, t.program...), t.args(d.path, scratch)...)
	if strings.HasPrefix(t.name, ours) {
		argv = append(argv, phasesFlag, phases)
	}
	return command{argv: argv, limit: runTimeout}
}

// title returns the name of a tool as tables print it.
func (t *tool) title() string {
	if t.version == "" {
		return t.name
	}
	return t.name + " " + t.version
}

func allTools() []*tool {
	build := once(findOurs)
	return []*tool{
		{ // Leaks, exact dominators, retained sizes, histogram
			name: ours, find: build,
			args: func(dump, _ string) []string { return []string{"analyze", dump, "--json"} },
		},
		{ // The histogram
			name: reading, find: build,
			args: func(dump, _ string) []string {
				return append([]string{"analyze", dump, "--json"}, readingAlone...)
			},
		},
		{ // The default work, with a thousand leaking objects
			name: tracing, find: build,
			args: func(dump, _ string) []string {
				return []string{"analyze", dump, "--json", "--leaking-class", leakingClass}
			},
		},
		{ // Growth over three copies of the dump
			name: growing, find: build,
			args: func(dump, scratch string) []string {
				return append([]string{"growth", "--json"}, thrice(dump, scratch)...)
			},
		},
		{ // Exact dominators, retained sizes, histogram; no Android dumps
			name: analyzer, version: "0.3.2", find: crate(analyzer, "0.3.2"),
			args: func(dump, scratch string) []string {
				return []string{dump, filepath.Join(scratch, "report.md")}
			},
		},
		{ // The histogram
			name: slurp, version: "0.10.0", find: crate(slurp, "0.10.0"),
			args: func(dump, _ string) []string { return []string{dump} },
		},
		{ // Paths and retained sizes of leaking objects
			name: shark, version: jars.Shark.Version, find: findShark,
			args: func(dump, _ string) []string { return []string{dump} },
		},
	}
}

// thrice returns a dump and two copies of it. The copies are needed because
// several names of one file count as one dump. If a copy cannot be made,
// leakgate fails and names the missing file.
func thrice(dump, scratch string) []string {
	names := []string{dump}
	for _, name := range []string{"second", "third"} {
		path := filepath.Join(scratch, name+"-"+filepath.Base(dump))
		if _, err := os.Stat(path); err != nil {
			if err := duplicate(dump, path); err != nil {
				_ = os.Remove(path) // an incomplete copy is not a dump
			}
		}
		names = append(names, path)
	}
	return names
}

func duplicate(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy dump: %w", err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("copy dump: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy dump: %w", err)
	}
	return nil
}

// findOurs builds leakgate from this module, unless the user specifies a
// program.
func findOurs(ctx context.Context, c cache, o options, log io.Writer) ([]string, error) {
	if o.leakgate != "" {
		path, err := filepath.Abs(o.leakgate)
		if err != nil {
			return nil, fmt.Errorf("use -leakgate: %w", err)
		}
		return []string{path}, nil
	}
	dir, err := c.folder("bin")
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, ours)
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	fmt.Fprintln(log, "heapbench: building leakgate")
	module, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/leakgate/leakgate")
	if err != nil {
		return nil, fmt.Errorf("find leakgate: %w", err)
	}
	if _, err := output(ctx, strings.TrimSpace(module), "go", "build", "-o", program, "./cmd/leakgate"); err != nil {
		return nil, fmt.Errorf("build leakgate: %w", err)
	}
	return []string{program}, nil
}
