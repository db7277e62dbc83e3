package bisect

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/hostfile"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// CommitResult is the combined verdict of the runs at a commit.
type CommitResult string

// The outcomes are named after the terms of git bisect.
const (
	Good CommitResult = "good"
	Bad  CommitResult = "bad"
	Skip CommitResult = "skip"
)

// basis is the kind of evidence for an outcome. Outcomes with different bases
// cannot be compared: a leak that is present but does not grow is bad by
// presence and good by growth.
type basis int

const (
	absence  basis = iota // the leak is absent
	growth                // the leak grows
	flat                  // the leak is present but does not grow
	presence              // the leak is present in the only heap dump
)

// judgment is an outcome with its basis and the reason for it.
type judgment struct {
	CommitResult
	basis  basis
	reason string
	// leaks contains all leaks found in the judged runs, by key.
	leaks map[string]sighting
}

// sighting describes one leak in the runs.
type sighting struct {
	name    string
	classes []string
	// grows reports whether a run proves that the number of objects keeps
	// growing.
	grows bool
}

func skipped(format string, args ...any) judgment {
	return judgment{CommitResult: Skip, reason: fmt.Sprintf(format, args...)}
}

func absent(format string, args ...any) judgment {
	return judgment{CommitResult: Good, basis: absence, reason: fmt.Sprintf(format, args...)}
}

// keyForm matches a key or the beginning of one.
var keyForm = regexp.MustCompile(`^[0-9a-f]{8,40}$`)

// maxRuns is the maximum number of run directories that one run of the command
// may create.
const maxRuns = 1000

// Verdict judges the run directories in dir by one leak, which is identified by
// its key or by at least the first 8 digits of the key. It returns the reason
// in one line, and one of these results:
//
//   - bad: dumps at marks prove the leak, a check found more objects, a trip
//     found that the leak grows, or the number of its objects rises from each
//     dump to the next in at least 3 dumps of a process (5 if the app is in
//     use). If a complete run has only one heap dump of a process, a leak in
//     that dump is enough.
//   - good: all runs are complete and have a verdict (exit code 0 or 1), no
//     evidence is missing, and the leak is absent or does not grow.
//   - skip: everything else.
func Verdict(dir, key string) (CommitResult, string) {
	j := judge(dir, key)
	return j.CommitResult, j.reason
}

func judge(dir, key string) judgment {
	key = strings.ToLower(key)
	if !keyForm.MatchString(key) {
		return skipped("invalid key %s: want 8 to 40 hexadecimal digits", text.Quote(key, 50))
	}
	dirs, err := runDirs(dir)
	if err != nil {
		return skipped("%s", text.Head(err.Error(), maxReason))
	}
	if len(dirs) == 0 {
		return skipped("no run directory: the build failed, or the command does not start a run")
	}
	list := []judgment{}
	leaks := map[string]sighting{}
	for _, d := range dirs {
		list = append(list, judgeRun(d, key, leaks))
	}
	n := 0
	for k := range leaks {
		if strings.HasPrefix(k, key) {
			n++
		}
	}
	if n > 1 {
		return skipped("key %s matches %d leaks: give more digits", key, n)
	}
	j := worst(list)
	j.leaks = leaks
	return j
}

// worst combines several judgments. A proof takes precedence over a run that
// could not be judged, which takes precedence over the judgment with the best
// evidence.
func worst(list []judgment) judgment {
	return slices.MinFunc(list, func(a, b judgment) int {
		return cmp.Or(rank(a)-rank(b), int(b.basis)-int(a.basis))
	})
}

func rank(j judgment) int {
	switch {
	case j.CommitResult == Bad && j.basis == growth:
		return 0
	case j.CommitResult == Bad:
		return 1
	case j.CommitResult == Skip:
		return 2
	}
	return 3
}

// runDirs returns the run directories in a directory, sorted by name. It does
// not follow links.
func runDirs(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	defer f.Close()
	entries, err := f.ReadDir(maxRuns + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	if len(entries) > maxRuns {
		return nil, fmt.Errorf("list runs: more than %d", maxRuns)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(out)
	return out, nil
}

func judgeRun(dir, key string, leaks map[string]sighting) judgment {
	run, err := record.ReadRun(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return skipped("run %s has not ended", filepath.Base(dir))
	}
	if err != nil {
		return skipped("%s", text.Head(err.Error(), maxReason))
	}
	trip, err := readTrip(dir)
	if err != nil {
		return skipped("%s", text.Head(err.Error(), maxReason))
	}
	r := reading{run: run, trip: trip, key: key, leaks: leaks}
	return r.judge()
}

// maxTrip is the maximum size of trip.json in bytes.
const maxTrip = 16 << 20

// readTrip reads trip.json. It returns nil if the run was not a trip.
func readTrip(dir string) (*record.Trip, error) {
	f, err := hostfile.Open(filepath.Join(dir, record.TripName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open trip: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxTrip+1))
	if err != nil {
		return nil, fmt.Errorf("read trip: %w", err)
	}
	if len(raw) > maxTrip {
		return nil, fmt.Errorf("read trip: larger than %d bytes", maxTrip)
	}
	var t record.Trip
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("decode trip: %w", err)
	}
	if t.Schema != record.TripSchema {
		return nil, fmt.Errorf("decode trip: schema is %s, not %q", text.Quote(t.Schema, 50), record.TripSchema)
	}
	return &t, nil
}
