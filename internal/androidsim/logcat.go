package androidsim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/ksh"
)

// logPoll is the device time between two reads of a log that logcat follows.
const logPoll = 2 * time.Second

func logcat(c *call) int {
	q, problem := androidtext.ParseLogcat(c.phone.opt.API, c.Args[1:], c.phone.wall().UTC())
	switch {
	case problem != "":
		c.Out.Flush()
		fmt.Fprint(c.Errs, problem)
		return 255
	case q.Clear:
		c.phone.clearLog()
		return 0
	case q.Sizes:
		c.Printf("%s", androidtext.LogSizes())
		return 0
	}
	printer := androidtext.LogPrinter{Query: q, Boot: c.phone.bootTime()}
	lines := c.phone.logged(c.Cred, &q)
	if q.Newest >= 0 && len(lines) > q.Newest {
		lines = lines[len(lines)-q.Newest:]
	}
	for {
		for _, l := range lines {
			if q.Most == 0 {
				return 0
			}
			q.Most--
			c.Printf("%s", printer.Text(&l.LogEntry))
			q.From = l.Time.Add(1)
		}
		c.Out.Flush()
		if q.Dump || q.Most == 0 {
			return 0
		}
		// Entries that are more than a second old can no longer arrive.
		// Skipping them keeps the cost of following a log overnight constant.
		if seen := c.phone.wall().Add(-time.Second); seen.After(q.From) {
			q.From = seen
		}
		if c.phone.now().wait(c.Ctx, logPoll) != nil {
			return ksh.Status(c.Ctx)
		}
		lines = c.phone.logged(c.Cred, &q)
	}
}

// bootTime returns the wall clock time at which the phone booted.
func (p *Phone) bootTime() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wallAt(0)
}

// logged returns the entries that the query selects and the caller may read:
// all entries, or only its own.
func (p *Phone) logged(c cred, q *androidtext.LogQuery) []logLine {
	all := c.UID == uidRoot || c.UID == uidShell || c.UID == uidSystem
	return slices.DeleteFunc(p.log(q.From), func(l logLine) bool {
		return !all && l.uid != c.UID || l.Buffer == "kernel" && p.opt.BuildType == "user" || !q.Shows(&l.LogEntry)
	})
}

// clearLog removes all entries.
func (p *Phone) clearLog() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines, p.cleared = nil, p.wall()
}

// logTool implements log, which adds a log entry (part of toolbox, later of
// toybox).
func logTool(c *call) int {
	tag, priority, valid := "log", byte('I'), true
	words, ok := c.Getopt("^t:p:", func(o byte, v string) {
		if o == 't' {
			tag = v
		} else {
			priority, valid = androidtext.LogPriority(v)
		}
	})
	if !ok || !valid || len(words) == 0 {
		return c.Failf("usage: log [-p priorityChar] [-t tag] message")
	}
	p := c.phone
	p.mu.Lock()
	defer p.mu.Unlock()
	text := strings.Join(words, " ")
	p.add(logLine{uid: c.Cred.UID, LogEntry: androidtext.LogEntry{
		Time: p.wall().UTC(), Buffer: "main", PID: c.Leader.PID, TID: c.Leader.PID, Priority: priority,
		Tag: tag[:min(len(tag), 128)], Text: text[:min(len(text), 4068)],
	}})
	return 0
}
