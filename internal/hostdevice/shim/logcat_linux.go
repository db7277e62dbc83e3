package shim

import (
	"bufio"
	"fmt"
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// followEvery is the time between two reads of a log that logcat follows.
const followEvery = 20 * time.Millisecond

// logcat prints the entries of the log that match the options. It can also
// clear the log or print its size.
func logcat(c command) int {
	api, err := c.dir.API()
	if err != nil {
		return fail(c.err, "logcat", err)
	}
	q, problem := androidtext.ParseLogcat(api, c.args, time.Now())
	switch {
	case problem != "":
		fmt.Fprint(c.err, problem)
		return 1
	case q.Clear:
		if err := c.dir.ClearLog(); err != nil {
			return fail(c.err, "logcat", err)
		}
		return 0
	case q.Sizes:
		fmt.Fprint(c.out, androidtext.LogSizes())
		return 0
	}
	up, err := bootTime(c)
	if err != nil {
		return fail(c.err, "logcat", err)
	}
	return followLog(c, q, up)
}

// bootTime returns the current time minus the device's uptime, which at scale 1
// is the time at which the device booted.
func bootTime(c command) (time.Time, error) {
	clock, err := c.dir.Clock()
	if err != nil {
		return time.Time{}, err
	}
	up, err := clock.Now()
	return time.Now().Add(-up), err
}

func followLog(c command, q androidtext.LogQuery, boot time.Time) int {
	printer := androidtext.LogPrinter{Query: q, Boot: boot}
	for from := int64(0); ; time.Sleep(followEvery) {
		list, next, err := c.dir.ReadLog(from)
		if err != nil {
			return fail(c.err, "logcat", err)
		}
		list = slices.DeleteFunc(list, func(e androidtext.LogEntry) bool { return !q.Shows(&e) })
		if q.Newest >= 0 && from == 0 {
			list = list[max(0, len(list)-q.Newest):]
		}
		if q.Most >= 0 {
			list = list[:min(len(list), q.Most)]
			q.Most -= len(list)
		}
		out := bufio.NewWriter(c.out)
		for _, e := range list {
			out.WriteString(printer.Text(&e))
		}
		if err := out.Flush(); err != nil || q.Dump || q.Most == 0 {
			return 0
		}
		from = next
	}
}
