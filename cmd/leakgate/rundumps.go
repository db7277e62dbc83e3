package main

import (
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

// runDumps returns the heap dump of one process in each of two run directories: that of the
// end of the run where there is one, else the last. The process need not be named where
// the runs have dumps of one in common.
func runDumps(base, head, process string) (string, string, error) {
	of := make([]map[string]string, 2)
	for i, dir := range []string{base, head} {
		run, err := record.ReadRun(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return "", "", noRun(dir)
		}
		if err != nil {
			return "", "", err
		}
		if of[i] = lastDumps(dir, run); len(of[i]) == 0 {
			return "", "", fmt.Errorf("%s has no heap dump: diagnose.dump: at_end takes one of every process at the end of a run", text.Printable(dir))
		}
	}
	if process == "" {
		common := slices.DeleteFunc(slices.Sorted(maps.Keys(of[0])), func(name string) bool { return of[1][name] == "" })
		if len(common) != 1 {
			return "", "", chooseProcess(common)
		}
		process = common[0]
	}
	for i, dir := range []string{base, head} {
		if of[i][process] == "" {
			return "", "", fmt.Errorf("%s has no heap dump of %s; it has those of %s", text.Printable(dir), text.Printable(process), processNames(slices.Sorted(maps.Keys(of[i]))))
		}
	}
	return of[0][process], of[1][process], nil
}

// noRun says what to name instead of a directory without a run.json: the heap dumps that
// `leakgate diagnose` has left in it, or the run that has its samples there once it is finished.
func noRun(dir string) error {
	const what = "%s is a directory without a run.json: name two heap dumps"
	if _, err := os.Stat(filepath.Join(dir, record.SamplesName)); err == nil {
		return fmt.Errorf(what+" or two run directories; `leakgate report %s` finishes a run that was killed", text.Printable(dir), text.Printable(shellWord(dir)))
	}
	for _, below := range []string{"", response.Artifacts + "/*/*/"} {
		var dumps []string
		for _, pattern := range []string{"*.hprof", "*.hprof.zst"} {
			found, _ := fs.Glob(os.DirFS(dir), below+pattern) // a constant pattern, so never malformed
			dumps = append(dumps, found...)
		}
		if len(dumps) > 0 {
			return fmt.Errorf(what+", such as %s", text.Printable(dir), text.Printable(shellWord(filepath.Join(dir, filepath.FromSlash(slices.Max(dumps))))))
		}
	}
	return fmt.Errorf(what+" or two run directories", text.Printable(dir))
}

func chooseProcess(common []string) error {
	if len(common) == 0 {
		return errors.New("the two runs have heap dumps of no process in common")
	}
	return fmt.Errorf("both runs have heap dumps of %s: choose one with --process", processNames(common))
}

func processNames(names []string) string {
	for i, name := range names {
		names[i] = text.Printable(name)
	}
	return strings.Join(names, ", ")
}

// lastDumps are the heap dumps of a run by process. A run directory may come from
// somebody else: no name in it leads out of it.
func lastDumps(dir string, run record.Run) map[string]string {
	dumps, ends := map[string]string{}, map[string]bool{}
	for _, d := range run.Diagnoses {
		for _, s := range d.Steps {
			name := filepath.Join(filepath.FromSlash(d.Folder), s.File)
			if s.Step != "heap" || s.File == "" || !filepath.IsLocal(name) || !strings.HasPrefix(d.Folder, response.Artifacts+"/") {
				continue
			}
			path := filepath.Join(dir, name)
			if _, err := os.Stat(path); err != nil {
				continue
			}
			if end := d.Trigger == record.TriggerEnd; end || !ends[d.Process] {
				dumps[d.Process], ends[d.Process] = path, end
			}
		}
	}
	return dumps
}
