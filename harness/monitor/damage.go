package monitor

import (
	"fmt"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// damage is the lines of a run that could not be read.
type damage struct {
	// first has the first of them with the reasons, lines counts all.
	first []damagedLine
	lines int
}

type damagedLine struct {
	number int
	why    string
}

const (
	// maxDamaged bounds the damaged lines that are named.
	maxDamaged = 20
	// maxWhy bounds a reason, which quotes the line, in bytes.
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

// warnings name each line with its reason.
func (d *damage) warnings() []error {
	var out []error
	for _, l := range d.first {
		out = append(out, fmt.Errorf("line %d of %s cannot be read: %s; left out, and no verdict crosses it", l.number, record.SamplesName, l.why))
	}
	if more := d.lines - len(d.first); more > 0 {
		out = append(out, fmt.Errorf("%d more lines of %s cannot be read", more, record.SamplesName))
	}
	return out
}

// summary is the same in one sentence for run.json, empty where nothing is damaged.
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
	return fmt.Sprintf("lines of %s could not be read and are left out, no verdict crosses them: %s", record.SamplesName, strings.Join(numbers, ", "))
}

// tear says that lines are missing here. They may have told anything: that a process
// has restarted or is read in another way, that the device has started again.
func (l *ledger) tear() {
	l.torn, l.damaged = true, true
	for _, a := range l.order {
		a.torn, a.unsure = true, true
	}
}

// clockSlack is how far two lines may differ about the moment at which the run
// began: their times are whole milliseconds.
const clockSlack = time.Second

// mend takes the clock of the first line after missing ones. One that showed another
// time when the run began is that of a device that has started again.
func (l *ledger) mend(t float64, up time.Duration) []step {
	if !l.torn {
		return nil
	}
	l.torn = false
	if begun := up - clockOf(t); (begun - l.begun).Abs() > clockSlack {
		return l.reboot(t, up)
	}
	return nil
}

// mend takes what the first samples after missing lines tell of the process, and
// ends its series: what is between them nobody knows.
func (a *account) mend(s record.Sample, up time.Duration) []detector.Transition {
	cut := a.torn
	a.bridge(up)
	if a.unsure && s.Breakdown == nil { // a breakdown says nothing of the fast channel
		a.unsure = false
		if source := capture.Source(s.Source); source != a.source {
			a.source, a.reasons, cut = source, nil, true
		}
	}
	switch {
	case !cut || a.samples+a.details == 0:
		return nil
	case a.PID != s.PID || a.Start != s.Start:
		a.PID, a.Start = s.PID, s.Start
		a.restarts++
		a.lastUp = 0
		a.room.Restart(up)
		return a.detector.Restart(up)
	}
	steps := a.detector.Change(up)
	for i := range steps {
		steps[i].Because = "lines are missing before this"
	}
	return steps
}

// bridge counts the hole that missing lines have left in the series, once.
func (a *account) bridge(up time.Duration) {
	if a.torn && a.lastUp > 0 && up > a.lastUp {
		a.gaps++
		a.absent += (up - a.lastUp).Seconds()
	}
	a.torn = false
}
