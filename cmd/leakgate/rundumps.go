package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// runSides returns the path of one process's summary or heap dump, for each of
// two run directories. It prefers the dump taken at the end of the run, and
// otherwise returns the last dump. The process need not be named if exactly one
// process has dumps in both runs.
func (f *diffFlags) runSides(base, head string) (sides [2]string, err error) {
	var of [2]map[string]string
	for i, dir := range []string{base, head} {
		run, err := record.ReadRun(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return sides, noRun(dir)
		}
		if err != nil {
			return sides, err
		}
		if of[i] = f.lastDumps(dir, run, i == 0); len(of[i]) == 0 {
			return sides, f.noDump(dir)
		}
	}
	process := f.process
	if process == "" {
		common := slices.DeleteFunc(slices.Sorted(maps.Keys(of[0])),
			func(name string) bool { return of[1][name] == "" })
		if len(common) != 1 {
			return sides, chooseProcess(common)
		}
		process = common[0]
	}
	for i, dir := range []string{base, head} {
		if sides[i] = of[i][process]; sides[i] == "" {
			return sides, fmt.Errorf("%s has no heap dump of %s; it has those of %s",
				text.Printable(dir), text.Printable(process), processNames(slices.Sorted(maps.Keys(of[i]))))
		}
	}
	return sides, nil
}

func (f *diffFlags) noDump(dir string) error {
	if f.mapping+f.baseMapping+f.model != "" {
		return fmt.Errorf("%s has no heap dump: --mapping, --base-mapping and --size-model need one; without them, "+
			"diff compares the summaries that a run keeps", text.Printable(dir))
	}
	return fmt.Errorf("%s has no heap dump: set diagnose.dump: at_end to dump every process at the end of a run",
		text.Printable(dir))
}

// noRun returns the error for a directory without a run.json. The error says
// what to name instead: the heap dumps that `leakgate diagnose` wrote there, or
// the same run after `leakgate report` has finished it.
func noRun(dir string) error {
	const what = "%s is a directory without a run.json: name two heap dumps"
	if _, err := os.Stat(filepath.Join(dir, record.SamplesName)); err == nil {
		return fmt.Errorf(what+" or two run directories; `leakgate report %s` finishes a run that was killed",
			text.Printable(dir), text.Printable(shellWord(dir)))
	}
	for _, below := range []string{"", response.Artifacts + "/*/*/"} {
		var dumps []string
		for _, pattern := range []string{"*.hprof", "*.hprof.zst"} {
			found, _ := fs.Glob(os.DirFS(dir), below+pattern) // a constant pattern, so never malformed
			dumps = append(dumps, found...)
		}
		if len(dumps) > 0 {
			return fmt.Errorf(what+", such as %s", text.Printable(dir),
				text.Printable(shellWord(filepath.Join(dir, filepath.FromSlash(slices.Max(dumps))))))
		}
	}
	return fmt.Errorf(what+" or two run directories", text.Printable(dir))
}

func chooseProcess(common []string) error {
	if len(common) == 0 {
		return errors.New("no process has heap dumps in both runs")
	}
	return fmt.Errorf("both runs have heap dumps of %s: choose one with --process", processNames(common))
}

func processNames(names []string) string {
	for i, name := range names {
		names[i] = text.Printable(name)
	}
	return strings.Join(names, ", ")
}

// lastDumps returns the summary or heap dump of each process of a run: the one
// from the end of the run if it exists, otherwise the last one. A run directory
// may come from an untrusted source, so names that point outside the directory
// are ignored.
func (f *diffFlags) lastDumps(dir string, run record.Run, base bool) map[string]string {
	dumps, ends := map[string]string{}, map[string]bool{}
	for _, d := range run.Diagnoses {
		path := f.sideOf(dir, &d, base)
		if path == "" {
			continue
		}
		if end := d.Trigger == record.TriggerEnd; end || !ends[d.Process] {
			dumps[d.Process], ends[d.Process] = path, end
		}
	}
	return dumps
}

// sideOf returns the path of the summary of a diagnosed heap dump. Without a
// usable summary, it returns the path of the dump itself, or "" if there is no
// dump. The class names in the summary are already translated with the run's
// mapping.
func (f *diffFlags) sideOf(dir string, d *record.Diagnosis, base bool) string {
	mapping := f.mapping
	if base {
		mapping = f.baseMapping
		if d.Heap != nil && d.Heap.Names == obfuscated {
			mapping = cmp.Or(mapping, f.mapping)
		}
	}
	if d.Heap != nil && d.Heap.Summary == response.SummaryName && mapping == "" && f.model == "" {
		if path := inRun(dir, d.Folder, d.Heap.Summary); path != "" {
			return path
		}
	}
	for _, s := range d.Steps {
		if path := inRun(dir, d.Folder, s.File); s.Step == "heap" && s.File != "" && path != "" {
			return path
		}
	}
	return ""
}

// obfuscated is the value by which a record marks names from a dump that was
// read without a mapping.
const obfuscated = "obfuscated"

// inRun returns the path of a file of a run directory, or "" if the file does
// not exist.
func inRun(dir, folder, file string) string {
	name := filepath.Join(filepath.FromSlash(folder), file)
	if !filepath.IsLocal(name) || !strings.HasPrefix(folder, response.Artifacts+"/") {
		return ""
	}
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}
