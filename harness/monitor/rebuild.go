package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters"
)

// Rebuild makes the record of a run from the lines of its directory: they are
// judged again by the rules that the run had. A run that was killed is told as
// such, with all that it has measured. The warnings say what of the directory
// could not be used; the error is a directory without a run, or with one that
// cannot be read.
func Rebuild(dir string) (reporters.Run, []error, error) {
	path := filepath.Join(dir, reporters.SamplesName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return reporters.Run{}, nil, fmt.Errorf("open run: %s holds no run: there is no %s in it", dir, reporters.SamplesName)
	case err != nil:
		return reporters.Run{}, nil, fmt.Errorf("open run: %w", err)
	case !info.Mode().IsRegular(): // opening a pipe would wait for its writer
		return reporters.Run{}, nil, fmt.Errorf("open run: %s is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return reporters.Run{}, nil, fmt.Errorf("open run: %w", err)
	}
	defer f.Close()
	var b rebuild
	warnings, err := reporters.ReadSamples(f, reporters.Lines{Header: b.begin, Sample: b.sample, Event: b.event})
	if err != nil {
		return reporters.Run{}, warnings, fmt.Errorf("read run in %s: %w", dir, err)
	}
	return b.record(), warnings, nil
}

// rebuild hears the lines of a run.
type rebuild struct {
	outcome
	byDevice map[string]*ledger
}

func (b *rebuild) begin(h reporters.Header) error {
	policy, err := policyOf(h)
	if err != nil {
		return err
	}
	b.header, b.byDevice = h, map[string]*ledger{}
	for _, d := range h.Devices {
		if b.byDevice[d.Device] != nil {
			return fmt.Errorf("device %q stands twice in the header", d.Device)
		}
		if err := plausible(d.StartedUp); err != nil {
			return err
		}
		l := newLedger(policy, d)
		b.byDevice[d.Device] = l
		b.ledgers = append(b.ledgers, l)
	}
	b.final = reporters.Event{Text: stoppedKilled}
	if h.Plan != nil {
		b.final.Workload = h.Plan.Workload
	}
	return nil
}

// policyOf is the policy that the run had; the default where the header does not
// tell it, as before leakgate wrote it there.
func policyOf(h reporters.Header) (detector.Policy, error) {
	policy := detector.ArticlePolicy()
	if h.Plan == nil || len(h.Plan.Policy) == 0 {
		return policy, nil
	}
	if err := json.Unmarshal(h.Plan.Policy, &policy); err != nil {
		return policy, fmt.Errorf("decode policy: %w", err)
	}
	return policy, policy.Validate()
}

func (b *rebuild) sample(s reporters.Sample) error {
	l := b.byDevice[s.Device]
	if l == nil {
		return fmt.Errorf("device %q is not in the header", s.Device)
	}
	if err := plausible(s.T, s.Up); err != nil {
		return err
	}
	if bytes, ok := bytesOf(s); ok && (bytes < 0 || bytes > maxBytes) {
		return fmt.Errorf("process %q has %d bytes", s.Process, bytes)
	}
	l.sample(s)
	return nil
}

const (
	// maxSeconds bounds the times of a line: thirty years.
	maxSeconds = 1e9
	// maxBytes bounds the memory of a process.
	maxBytes = 1 << 50
)

// plausible refuses times that no run can have and that the clock's type, or JSON,
// could not hold.
func plausible(seconds ...float64) error {
	for _, s := range seconds {
		if math.Abs(s) > maxSeconds {
			return fmt.Errorf("a time of %g s", s)
		}
	}
	return nil
}

func (b *rebuild) event(e reporters.Event) error {
	if e.Event == "stopped" {
		b.final = e
		return nil
	}
	l := b.byDevice[e.Device]
	if l == nil {
		return fmt.Errorf("device %q is not in the header", e.Device)
	}
	if err := plausible(e.T, e.Up, e.Lasted); err != nil {
		return err
	}
	l.event(e)
	return nil
}

// record is the run; one that was killed has ended with its last line.
func (b *rebuild) record() reporters.Run {
	if b.final.Ended == nil {
		longest := 0.0
		for _, l := range b.ledgers {
			longest = max(longest, l.last/l.device.TimeScale)
		}
		b.final.Ended = new(b.header.Started.Add(time.Duration(longest * float64(time.Second))).Round(time.Millisecond))
	}
	return b.outcome.record()
}

// leftovers begin the names of what a run has in its directory only while it goes on.
var leftovers = []string{inboxName, reporters.SamplesName + ".new", ".run.json-", "." + reporters.SamplesName + ".new-"}

// Finish takes away what a killed run has left in its directory beside its record.
func Finish(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("finish run: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if slices.ContainsFunc(leftovers, func(begin string) bool { return strings.HasPrefix(e.Name(), begin) }) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("finish run: %w", err)
	}
	return nil
}
