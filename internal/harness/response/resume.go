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

// Resume does for a run that was killed what it had not come to: it analyses what was
// collected and leaves heap dumps in the form that the run was to keep, and removes what
// was half written. Diagnoses are completed in place; the warnings say what could not be
// done, the error is a folder that cannot be written, or the end of ctx, and what is not
// analysed then is so the next time. Of the options the memory and the mapping count.
func Resume(ctx context.Context, dir string, o Options, diagnoses []record.Diagnosis) (warnings []error, err error) {
	warnings, err = tidy(dir, o, diagnoses)
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
		// An earlier report has analysed it, or the run had, and no line says so: of what is
		// not kept nothing is left to analyse.
		if done, ok := f.told(*d); ok {
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
			// What grew over all marks is not told by one of them.
			Trigger: d.Trigger, T: d.T, Before: r.earlier(dir, diagnoses, *d),
		}}
		c.Record.Steps = slices.Clone(c.Record.Steps)
		c.findDumps()
		c.Record.Findings = []record.Finding{} // an analysis that was interrupted had some
		errs = append(errs, r.Analyse(ctx, c))
		*d = c.Record
		if c.interrupted {
			return warnings, errors.Join(append(errs, ctx.Err())...)
		}
	}
	return warnings, errors.Join(errs...)
}

// resumable is the folder of a diagnosis of a run that may come from somebody else: it and
// its files are in the run directory.
func resumable(dir string, d record.Diagnosis) (folder, error) {
	if !inside(d.Folder) {
		return folder{}, fmt.Errorf("%q is no folder of a run", text.Head(d.Folder, maxText))
	}
	if slices.ContainsFunc(d.Steps, func(s record.Collected) bool { return strings.ContainsAny(s.File, `/\`) || s.File == ".." }) {
		return folder{}, fmt.Errorf("%s has files that are not in it", text.Head(d.Folder, maxText))
	}
	f := folder{name: d.Folder, path: dir}
	for part := range strings.SplitSeq(d.Folder, "/") {
		f.path = filepath.Join(f.path, part)
		info, err := os.Lstat(f.path)
		if err != nil {
			return folder{}, err
		}
		if !info.IsDir() {
			return folder{}, fmt.Errorf("%s is no folder", text.Head(d.Folder, maxText))
		}
	}
	return f, nil
}

// inside tells whether a folder is one that newFolder makes: a run directory may come
// from somebody else.
func inside(name string) bool {
	return path.Clean(name) == name && strings.HasPrefix(name, Artifacts+"/") && filepath.IsLocal(filepath.FromSlash(name))
}

// earlier reads the latest snapshot of the same process before a diagnosis.
func (r *Responder) earlier(dir string, all []record.Diagnosis, d record.Diagnosis) *Moment {
	var latest *record.Diagnosis
	for i := range all {
		s := &all[i]
		same := s.Device == d.Device && s.Process == d.Process && s.User == d.User && s.PID == d.PID
		// The end is compared with the start.
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
	m, _ := readMoment(c)
	if m != nil {
		m.hidden = true
	}
	return m
}

// tidy removes what was being written when a run was killed: temporary names begin with
// a dot. Heap dumps of folders that no diagnosis has are left in the form that is kept.
// No link is followed.
func tidy(dir string, o Options, diagnoses []record.Diagnosis) (warnings []error, err error) {
	known := map[string]bool{}
	for i := range diagnoses {
		known[diagnoses[i].Folder] = true
	}
	var errs []error
	unknown := map[string]string{} // folders, with the name of their dump
	var named []folder             // those with names of threads
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
			// Where both names are there, the packed one may be what was to replace the other.
			case unknown[name] == "":
				unknown[name] = e.Name()
			}
		}
		return nil
	})
	for _, f := range named {
		c := &Case{folder: f, hide: android.NewRandomHider(), Record: record.Diagnosis{Steps: []record.Collected{{File: threadsFile}}}}
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

// leave leaves a dump of which no line tells in the form that its diagnosis.json asks for,
// stripped where that says nothing: the run was killed before the diagnosis had all. The
// warnings say what was done.
func (f folder) leave(o Options, file string) []error {
	d, _ := f.read() // without it the default counts
	o.Keep = Keep(d.Keep)
	r := New("", o)
	done := d.Analyzed || slices.ContainsFunc(d.Steps, func(s record.Collected) bool { return s.File == file && strings.HasSuffix(s.Note, zeroed) })
	if done && r.options.Keep != Nothing {
		return nil
	}
	// No report comes for it: what is not to stay goes now.
	c := &Case{folder: f, Order: Order{Trigger: record.TriggerDemand}, interrupted: !d.Analyzed}
	c.Record.Steps = []record.Collected{{Step: heapStep, File: file}}
	if _, err := r.keep(c, file); err != nil {
		c.warn(err)
	}
	r.drop(c)
	left := c.Record.Steps[0]
	said := cmp.Or(left.Note, "all of it stays (diagnose.keep is raw)")
	if left.File != "" {
		file = left.File
		said += "; leakgate analyze shows what is in it"
	}
	warnings := []error{fmt.Errorf("%s is of a diagnosis that did not come to its end; %s: %s", text.Head(f.name, maxText), file, said)}
	return append(warnings, c.warnings()...)
}

// warnings are those of the record, as errors.
func (c *Case) warnings() (list []error) {
	for _, text := range c.Record.Warnings {
		list = append(list, errors.New(text))
	}
	return list
}
