package ledger

import (
	"fmt"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// damage describes the lines of a run that could not be read.
type damage struct {
	// first lists the first maxDamaged damaged lines with the reasons; lines is
	// the total number of damaged lines.
	first []damagedLine
	lines int
}

type damagedLine struct {
	number int
	why    string
}

const (
	// maxDamaged is the maximum number of damaged lines that are listed.
	maxDamaged = 20
	// maxWhy is the maximum length in bytes of a reason, which quotes the line.
	maxWhy = 200
)

func (d *damage) add(number int, why error) {
	d.lines++
	if len(d.first) == maxDamaged {
		return
	}
	text := why.Error()
	if len(text) > maxWhy {
		text = strings.ToValidUTF8(text[:maxWhy], "") + "..."
	}
	d.first = append(d.first, damagedLine{number, text})
}

// warnings returns a warning with the reason for each listed line, and one for
// all others.
func (d *damage) warnings() []error {
	var out []error
	for _, l := range d.first {
		out = append(out,
			fmt.Errorf("line %d of %s cannot be read: %s; skipped, and no trend crosses it", l.number,
				record.SamplesName, l.why))
	}
	if more := d.lines - len(d.first); more > 0 {
		out = append(out,
			fmt.Errorf("%s of %s cannot be read", text.Plural(more, "more line", "more lines"), record.SamplesName))
	}
	return out
}

// summary describes the damage in one sentence for run.json. It is empty if no
// line is damaged.
func (d *damage) summary() string {
	if d.lines == 0 {
		return ""
	}
	var numbers []string
	for _, l := range d.first {
		numbers = append(numbers, fmt.Sprint(l.number))
	}
	if more := d.lines - len(d.first); more > 0 {
		numbers = append(numbers, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("lines of %s could not be read and were skipped; no trend crosses them: %s", record.SamplesName,
		strings.Join(numbers, ", "))
}

// markMissing records that lines are missing here. The missing lines may have
// contained any event: a process may have restarted or switched to another
// source, or the device may have rebooted.
func (p *Part) markMissing() {
	p.missingLines, p.damaged = true, true
	for _, a := range p.accounts {
		a.missingLines, a.unsure = true, true
	}
	p.apps.markMissing()
	p.eachWindow((*Part).markMissing)
}

// clockSlack is the maximum difference between the run start times implied by
// two lines that does not indicate a reboot. Lines contain times in whole
// milliseconds.
const clockSlack = time.Second

// resync uses the clock of the first line after missing lines. If that line
// implies a different start time of the run, the device has rebooted.
func (p *Part) resync(t float64, up time.Duration) []Entry {
	if !p.missingLines {
		return nil
	}
	p.missingLines = false
	if begun := up - clockOf(t); (begun - p.begun).Abs() > clockSlack {
		return p.reboot(t, up)
	}
	return nil
}

// resync uses the identity of the process in the first sample after missing
// lines. It ends the series, because it is unknown what happened in between.
func (a *Account) resync(s record.Sample, up time.Duration) []detector.Transition {
	ends := a.missingLines
	a.countGap(up)
	if a.unsure && s.Breakdown == nil { // a breakdown does not show the source of the fast channel
		a.unsure = false
		if source := capture.Source(s.Source); source != a.source {
			a.source, a.reasons, ends = source, nil, true
		}
	}
	if ends {
		a.presence.open = false
	}
	switch {
	case !ends || a.Samples+a.details == 0:
		return nil
	case a.PID != s.PID || a.Start != s.Start:
		a.presence.depart(s.T)
		a.presence.arrive(s.T)
		a.restart(s.PID, s.Start)
		a.limits.watch.Restart(up)
		return a.Detector.Restart(up)
	}
	steps := a.Detector.ChangeQuantity(up)
	for i := range steps {
		steps[i].Because = "lines are missing before this"
	}
	return steps
}

// countGap counts the gap that missing lines cause in the series; it counts
// each gap only once.
func (a *Account) countGap(up time.Duration) {
	if a.missingLines && a.LastUp > 0 && up > a.LastUp {
		a.gaps++
		a.absent += (up - a.LastUp).Seconds()
	}
	a.missingLines = false
}
