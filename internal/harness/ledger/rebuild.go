package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Rebuild returns the record of a run from the lines in its directory, which
// are judged again by the rules of the run. A killed run is reported as killed,
// with everything that it measured. Damaged lines are skipped and listed in
// warnings; all trends restart after them. Rebuild returns an error if the
// directory contains no run, or a run without a readable line.
func Rebuild(dir string) (record.Run, []error, error) {
	path := filepath.Join(dir, record.SamplesName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return record.Run{}, nil, fmt.Errorf("open run: %s is not a run directory: it has no %s",
			dir, record.SamplesName)
	case err != nil:
		return record.Run{}, nil, fmt.Errorf("open run: %w", err)
	case !info.Mode().IsRegular(): // opening a pipe would block until it has a writer
		return record.Run{}, nil, fmt.Errorf("open run: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return record.Run{}, nil, fmt.Errorf("open run: %w", err)
	}
	defer f.Close()
	l, warnings, err := Read(f, func(h record.Header) (*Ledger, error) {
		policy, err := PolicyOf(h)
		if err != nil {
			return nil, fmt.Errorf("%w, or judge the run with `leakgate replay --policy robust`", headerError(h, err))
		}
		l, err := New(h, policy)
		if err != nil {
			return nil, err
		}
		l.Limit = MaxProcesses
		return l, nil
	})
	if err != nil {
		return record.Run{}, nil, fmt.Errorf("read run in %s: %w", dir, err)
	}
	if l.skipped > 0 { // without those processes, a failing run could pass
		return record.Run{}, nil, fmt.Errorf("read run in %s: more than %d processes in %s: "+
			"judge the first ones with `leakgate replay`", dir, MaxProcesses, record.SamplesName)
	}
	return l.Run(), warnings, nil
}

// Read reads a samples.ndjson file. It passes the file's header to begin, and
// adds all lines to the ledger that this function returns. Unusable lines are
// skipped and listed in warnings; all trends restart after them. Read returns
// an error if the file has no usable line.
func Read(in io.Reader, begin func(record.Header) (*Ledger, error)) (*Ledger, []error, error) {
	var l *Ledger
	truncated, err := record.ReadSamples(in, record.Lines{
		Header: func(h record.Header) (err error) {
			if len(h.Devices) == 0 ||
				slices.ContainsFunc(h.Devices, func(d record.HeaderDevice) bool { return d.Device == "" }) {
				return headerError(h, errors.New("it has no devices, or a device without a name"))
			}
			l, err = begin(h)
			return err
		},
		Sample:  func(s record.Sample) error { return l.AddSample(s) },
		Event:   func(e record.Event) error { return l.AddEvent(e) },
		Damaged: func(line int, why error) { l.AddDamage(line, why) },
	})
	if err != nil {
		return nil, nil, err
	}
	if l.lines == 0 && l.damage.lines > 0 {
		first := l.damage.first[0]
		return nil, nil, fmt.Errorf("only the header can be read; line %d: %s", first.number, first.why)
	}
	var warnings []error
	for _, text := range l.headerWarnings() {
		warnings = append(warnings, errors.New(text))
	}
	warnings = append(append(warnings, l.damage.warnings()...), truncated...)
	if l.skipped > 0 {
		warnings = append(warnings,
			fmt.Errorf("more than %d processes: %s skipped", l.Limit,
				text.Plural(l.skipped, "line of the remaining processes is",
					"lines of the remaining processes are")))
	}
	return l, warnings, nil
}
