package response

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters"
)

// Resume does for a run that was killed what it had not come to: it analyses what was
// collected and leaves heap dumps in the form that the run was to keep, and removes what
// was half written. Diagnoses are completed in place; the warnings say what could not be
// done, the error is a folder that cannot be written. Of the options the memory and the
// mapping count.
func Resume(ctx context.Context, dir string, o Options, diagnoses []reporters.Diagnosis) (warnings []error, err error) {
	var errs []error
	for i := range diagnoses {
		d := &diagnoses[i]
		if d.Analysed || len(d.Steps) == 0 {
			continue
		}
		if !inside(d.Folder) {
			warnings = append(warnings, fmt.Errorf("resume a diagnosis: %q is no folder of a run", reporters.Head(d.Folder, maxText)))
			continue
		}
		if slices.ContainsFunc(d.Steps, func(s reporters.Collected) bool { return strings.ContainsAny(s.File, `/\`) || s.File == ".." }) {
			warnings = append(warnings, fmt.Errorf("resume a diagnosis: %s has files that are not in it", reporters.Head(d.Folder, maxText)))
			continue
		}
		o.Keep = Keep(d.Keep)
		r := New(dir, o)
		f := folder{name: d.Folder, path: filepath.Join(dir, filepath.FromSlash(d.Folder))}
		if _, err := os.Stat(f.path); err != nil {
			warnings = append(warnings, fmt.Errorf("resume a diagnosis: %w", err))
			continue
		}
		c := &Case{folder: f, Record: *d, Order: Order{
			Process: capture.Process{Name: d.Process, User: d.User, PID: d.PID}, Recipe: d.Recipe, Kind: d.Kind,
			// What grew over all marks is not told by one of them.
			Trigger: d.Trigger, T: d.T, Before: r.earlier(dir, diagnoses, *d),
		}}
		errs = append(errs, r.Analyse(ctx, c))
		*d = c.Record
	}
	return warnings, errors.Join(append(errs, clean(filepath.Join(dir, Artifacts)))...)
}

// inside tells whether a folder is one that newFolder makes: a run directory may come
// from somebody else.
func inside(name string) bool {
	return path.Clean(name) == name && strings.HasPrefix(name, Artifacts+"/") && filepath.IsLocal(filepath.FromSlash(name))
}

// earlier reads the latest snapshot of the same process before a diagnosis.
func (r *Responder) earlier(dir string, all []reporters.Diagnosis, d reporters.Diagnosis) *Moment {
	var latest *reporters.Diagnosis
	for i := range all {
		s := &all[i]
		same := s.Device == d.Device && s.Process == d.Process && s.User == d.User && s.PID == d.PID
		if same && s.Recipe == Snapshot && s.T < d.T && inside(s.Folder) && (latest == nil || s.T > latest.T) {
			latest = s
		}
	}
	if latest == nil {
		return nil
	}
	record := *latest
	record.Warnings = slices.Clone(record.Warnings)
	c := &Case{folder: folder{name: record.Folder, path: filepath.Join(dir, filepath.FromSlash(record.Folder))}, Record: record,
		Order: Order{Process: capture.Process{Name: d.Process, User: d.User, PID: d.PID}}}
	m, _ := readMoment(c)
	return m
}

// clean removes what was being written when a run was killed: temporary names begin with
// a dot.
func clean(dir string) error {
	var errs []error
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.Type().IsRegular() && strings.HasPrefix(e.Name(), "."):
			errs = append(errs, os.Remove(p))
		}
		return nil
	})
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("clean the artifacts: %w", err)
	}
	return nil
}
