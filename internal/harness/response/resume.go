package response

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Resume completes a run that was killed: it analyzes what was collected, keeps
// heap dumps in the form that the run specified, and removes incomplete files.
// It completes diagnoses in place; the warnings describe what could not be
// done. An error means that a folder cannot be written or that ctx is done; the
// next call then analyzes the rest. Only the options Memory and Mapping are
// used.
func Resume(ctx context.Context, dir string, o Options, diagnoses []record.Diagnosis) (warnings []error, err error) {
	warnings, err = removePartial(dir, o, diagnoses)
	errs := []error{err}
	for i := range diagnoses {
		d := &diagnoses[i]
		if d.Analyzed || len(d.Steps) == 0 {
			continue
		}
		f, err := resumable(dir, *d)
		if err != nil {
			warnings = append(warnings, fmt.Errorf("resume a diagnosis: %w", err))
			continue
		}
		o.Keep = Keep(d.Keep)
		r := New(dir, o)
		// The dump has already been analyzed, by an earlier report or by the
		// run, which was killed before it wrote a line. If no dump is kept,
		// there is nothing left to analyze.
		if done, ok := f.written(*d); ok {
			c := &Case{folder: f, Record: done, Order: Order{Trigger: d.Trigger}}
			if r.drop(c) {
				errs = append(errs, c.write())
			}
			*d = c.Record
			continue
		}
		if ctx.Err() != nil {
			return warnings, errors.Join(append(errs, ctx.Err())...)
		}
		c := &Case{folder: f, Record: *d, Order: Order{
			Process: capture.Process{Name: d.Process, User: d.User, PID: d.PID}, Recipe: d.Recipe, Kind: d.Kind,
			// Growth over all marks is not reported: each diagnosis is resumed
			// on its own.
			Trigger: d.Trigger, T: d.T, Before: r.earlier(dir, diagnoses, *d),
		}}
		c.Record.Steps = slices.Clone(c.Record.Steps)
		c.findDumps()
		c.Record.Findings = []record.Finding{} // drop the findings of an interrupted analysis
		errs = append(errs, r.Analyze(ctx, c))
		*d = c.Record
		if c.interrupted {
			return warnings, errors.Join(append(errs, ctx.Err())...)
		}
	}
	return warnings, errors.Join(errs...)
}

// resumable returns the folder of a diagnosis of an untrusted run: the folder
// and its files must be in the run directory.
func resumable(dir string, d record.Diagnosis) (folder, error) {
	if !inside(d.Folder) {
		return folder{}, fmt.Errorf("%q is not a folder in a run directory", text.Head(d.Folder, maxText))
	}
	if slices.ContainsFunc(d.Steps,
		func(s record.Collected) bool { return strings.ContainsAny(s.File, `/\`) || s.File == ".." }) {
		return folder{}, fmt.Errorf("%s lists files outside the folder", text.Head(d.Folder, maxText))
	}
	f := folder{name: d.Folder, path: dir}
	for part := range strings.SplitSeq(d.Folder, "/") {
		f.path = filepath.Join(f.path, part)
		info, err := os.Lstat(f.path)
		if err != nil {
			return folder{}, err
		}
		if !info.IsDir() {
			return folder{}, fmt.Errorf("%s is not a folder", text.Head(d.Folder, maxText))
		}
	}
	return f, nil
}

// inside reports whether newFolder could have created a folder of this name.
// The name comes from a run directory, which is untrusted.
func inside(name string) bool {
	return path.Clean(name) == name && strings.HasPrefix(name, Artifacts+"/") &&
		filepath.IsLocal(filepath.FromSlash(name))
}

// earlier reads the latest snapshot of the same process that was taken before a
// diagnosis.
func (r *Responder) earlier(dir string, all []record.Diagnosis, d record.Diagnosis) *MemorySnapshot {
	var latest *record.Diagnosis
	for i := range all {
		s := &all[i]
		same := s.Device == d.Device && s.Process == d.Process && s.User == d.User && s.PID == d.PID
		// The snapshot at the end of a run is compared with the snapshot at the
		// start.
		same = same && (d.Trigger != record.TriggerLast || s.Trigger == record.TriggerFirst)
		if same && s.Recipe == Snapshot && s.T < d.T && (latest == nil || s.T > latest.T) {
			latest = s
		}
	}
	if latest == nil {
		return nil
	}
	f, err := resumable(dir, *latest)
	if err != nil {
		return nil
	}
	snapshot := *latest
	snapshot.Warnings = slices.Clone(snapshot.Warnings)
	c := &Case{folder: f, Record: snapshot,
		Order: Order{Process: capture.Process{Name: d.Process, User: d.User, PID: d.PID}}}
	m, _ := readSnapshot(c)
	if m != nil {
		m.hidden = true
	}
	return m
}

// removePartial removes files that were incomplete when a run was killed; their
// temporary names begin with a dot. Heap dumps in folders without a diagnosis
// are stripped, kept or removed, as diagnosis.json in the folder specifies.
// Links are not followed.
func removePartial(dir string, o Options, diagnoses []record.Diagnosis) (warnings []error, err error) {
	known := map[string]bool{}
	for i := range diagnoses {
		known[diagnoses[i].Folder] = true
	}
	var errs []error
	unknown := map[string]string{} // the name of the dump in each folder
	var named []folder             // the folders that contain names of threads
	err = filepath.WalkDir(filepath.Join(dir, Artifacts), func(p string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !e.Type().IsRegular():
		case strings.HasPrefix(e.Name(), "."):
			errs = append(errs, os.Remove(p))
		case unpacked(e.Name()) == heapStep+".hprof", e.Name() == threadsFile:
			name, err := filepath.Rel(dir, filepath.Dir(p))
			name = filepath.ToSlash(name)
			switch {
			case err != nil || strings.Count(name, "/") != 2 || known[name]:
			case e.Name() == threadsFile:
				named = append(named, folder{name: name, path: filepath.Dir(p)})
			// If a folder contains both a packed and an unpacked dump, the
			// packed file may be an incomplete replacement of the other file.
			case unknown[name] == "":
				unknown[name] = e.Name()
			}
		}
		return nil
	})
	for _, f := range named {
		c := &Case{
			folder: f, hide: android.NewRandomRedactor(),
			Record: record.Diagnosis{Steps: []record.Collected{{File: threadsFile}}},
		}
		c.hideThreads()
		warnings = append(warnings, c.warnings()...)
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		f := folder{name: name, path: filepath.Join(dir, filepath.FromSlash(name))}
		warnings = append(warnings, f.leave(o, unknown[name])...)
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return warnings, fmt.Errorf("clean the artifacts: %w", err)
	}
	return warnings, nil
}

// leave handles a dump that no line of samples.ndjson names, because the run
// was killed before the diagnosis was complete. It leaves the dump in the form
// that diagnosis.json in its folder specifies, or stripped if that file is
// unreadable. The warnings describe what was done.
func (f folder) leave(o Options, file string) []error {
	d, _ := f.read() // if the file is unreadable, the default applies
	o.Keep = Keep(d.Keep)
	r := New("", o)
	done := d.Analyzed ||
		slices.ContainsFunc(d.Steps,
			func(s record.Collected) bool { return s.File == file && strings.HasSuffix(s.Note, zeroed) })
	if done && r.options.Keep != Nothing {
		return nil
	}
	// No later report analyzes the dump, so a dump that is not to be kept is
	// removed now.
	c := &Case{folder: f, Order: Order{Trigger: record.TriggerDemand}, interrupted: !d.Analyzed}
	c.Record.Steps = []record.Collected{{Step: heapStep, File: file}}
	if _, err := r.keep(c, file); err != nil {
		c.warn(err)
	}
	r.drop(c)
	left := c.Record.Steps[0]
	said := cmp.Or(left.Note, "kept as a whole (diagnose.keep: raw)")
	if left.File != "" {
		file = left.File
		said += "; leakgate analyze shows its content"
	}
	warnings := []error{
		fmt.Errorf("%s belongs to an incomplete diagnosis; %s: %s", text.Head(f.name, maxText), file, said),
	}
	return append(warnings, c.warnings()...)
}

// warnings returns the warnings of the record, as errors.
func (c *Case) warnings() (list []error) {
	for _, text := range c.Record.Warnings {
		list = append(list, errors.New(text))
	}
	return list
}
