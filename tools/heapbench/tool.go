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

// readingAlone makes leakgate read a dump, count, and do nothing more.
var readingAlone = []string{"--only", "histogram"}

// leakingClass is what leaks in the dumps that are made here (HeapMaker.java).
const leakingClass = "HeapMaker$Screen"

// tool is a program that reads heap dumps.
type tool struct {
	name string
	// version is a peer's; about is the part of leakgate's work that it does.
	version, about string
	// program is the program and its first arguments, once get has been called.
	program []string
	// args returns the arguments for a dump. Files to write go to the
	// directory.
	args func(dump, scratch string) []string
	find finder
	// missing is why it is missing, or "".
	missing string
}

// finder returns the program of a tool and its first arguments, which it may
// have to install.
type finder func(ctx context.Context, c cache, o options, log io.Writer) ([]string, error)

// once is a finder that searches once, for several tools.
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

// command returns a run of a tool on a dump. Only leakgate writes the file of
// phases.
func (t *tool) command(d *dump, scratch, phases string) command {
	argv := append(append([]string{}, t.program...), t.args(d.path, scratch)...)
	if strings.HasPrefix(t.name, ours) {
		argv = append(argv, phasesFlag, phases)
	}
	return command{argv: argv, limit: patience}
}

// title returns a tool as a table names it.
func (t *tool) title() string {
	if t.version == "" {
		return t.name
	}
	return t.name + " " + t.version
}

func allTools() []*tool {
	build := once(findOurs)
	return []*tool{
		{
			name: ours, find: build, about: "leaks, exact dominators, retained sizes, histogram",
			args: func(dump, _ string) []string { return []string{"analyze", dump, "--json"} },
		},
		{
			name: reading, find: build, about: "the histogram",
			args: func(dump, _ string) []string {
				return append([]string{"analyze", dump, "--json"}, readingAlone...)
			},
		},
		{
			name: tracing, find: build, about: "the same, with a thousand objects that leak",
			args: func(dump, _ string) []string {
				return []string{"analyze", dump, "--json", "--leaking-class", leakingClass}
			},
		},
		{
			name: growing, find: build, about: "what grows over three dumps, of which each is this one",
			args: func(dump, scratch string) []string {
				return append([]string{"growth", "--json"}, thrice(dump, scratch)...)
			},
		},
		{
			name: analyzer, version: "0.3.2", find: crate(analyzer, "0.3.2"),
			about: "exact dominators, retained sizes, histogram; no Android dumps",
			args: func(dump, scratch string) []string {
				return []string{dump, filepath.Join(scratch, "report.md")}
			},
		},
		{
			name: slurp, version: "0.10.0", find: crate(slurp, "0.10.0"), about: "the histogram",
			args: func(dump, _ string) []string { return []string{dump} },
		},
		{
			name: shark, version: jars.Shark.Version, find: findShark,
			about: "paths and retained sizes of leaking objects",
			args:  func(dump, _ string) []string { return []string{dump} },
		},
	}
}

// thrice returns a dump and two copies: several names of one file are one dump.
// If there is no space for them the error says what is missing.
func thrice(dump, scratch string) []string {
	names := []string{dump}
	for _, name := range []string{"second", "third"} {
		path := filepath.Join(scratch, name+"-"+filepath.Base(dump))
		if _, err := os.Stat(path); err != nil {
			if err := duplicate(dump, path); err != nil {
				_ = os.Remove(path) // a part of a dump is not a dump
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

// findOurs builds leakgate from this module, unless the user names a program.
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
