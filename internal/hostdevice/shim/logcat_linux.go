package shim

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// logcatPlan is what a call of logcat asks for (system/logging logcat/logcat.cpp).
type logcatPlan struct {
	follow, clear bool
	tail          int       // the last entries only, -1 for all
	since         time.Time // from then on, zero for all
	format        string
	epoch, year   bool
	buffers       []string
	pid           int
	text          *regexp.Regexp
	// tags are the priorities that are shown by tag, "*" for all others.
	tags map[string]byte
}

// priorities are the levels of the log, lowest first; S shows nothing.
const priorities = "VDIWEFS"

// followEvery is how often a log that is followed is looked at.
const followEvery = 20 * time.Millisecond

// logcat prints the log: -d, -t, -T, -c, -v, -b, -s, --pid, -e and filters.
func logcat(c command) int {
	p, err := parseLogcat(c.args)
	if err != nil {
		fmt.Fprintf(c.err, "logcat: %v\n", err)
		return 1
	}
	if p.clear {
		if err := c.dir.ClearLog(); err != nil {
			return fail(c.err, "logcat", err)
		}
		return 0
	}
	begun := map[string]bool{}
	for from := int64(0); ; time.Sleep(followEvery) {
		list, next, err := c.dir.ReadLog(from)
		if err != nil {
			return fail(c.err, "logcat", err)
		}
		list = slices.DeleteFunc(list, func(e state.Entry) bool { return !p.shows(e) })
		if p.tail >= 0 && from == 0 {
			list = list[max(0, len(list)-p.tail):]
		}
		if err := p.print(c.out, list, begun); err != nil || !p.follow {
			return 0
		}
		from = next
	}
}

func (p logcatPlan) print(w io.Writer, list []state.Entry, begun map[string]bool) error {
	out := bufio.NewWriter(w)
	for _, e := range list {
		if b := bufferOf(e); !begun[b] {
			begun[b] = true
			fmt.Fprintf(out, "--------- beginning of %s\n", b)
		}
		out.WriteString(p.line(e))
	}
	return out.Flush()
}

// line is one entry (system/logging liblog/logprint.cpp, android_log_formatLogLine).
func (p logcatPlan) line(e state.Entry) string {
	at := e.Time.Format("01-02 15:04:05.000")
	switch {
	case p.epoch:
		at = fmt.Sprintf("%19d.%03d", e.Time.Unix(), e.Time.Nanosecond()/int(time.Millisecond))
	case p.year:
		at = e.Time.Format("2006-01-02 15:04:05.000")
	}
	switch p.format {
	case "raw":
		return e.Text + "\n"
	case "brief":
		return fmt.Sprintf("%c/%-8s(%5d): %s\n", e.Priority, e.Tag, e.PID, e.Text)
	case "time":
		return fmt.Sprintf("%s %c/%-8s(%5d): %s\n", at, e.Priority, e.Tag, e.PID, e.Text)
	}
	return fmt.Sprintf("%s %5d %5d %c %-8s: %s\n", at, e.PID, e.TID, e.Priority, e.Tag, e.Text)
}

// bufferOf is the buffer that an entry would be in.
func bufferOf(e state.Entry) string {
	switch e.Tag {
	case "AndroidRuntime", "DEBUG":
		return "crash"
	case "ActivityManager":
		return "system"
	}
	return "main"
}

func (p logcatPlan) shows(e state.Entry) bool {
	least, ok := p.tags[e.Tag]
	if !ok {
		least = p.tags["*"]
	}
	return strings.IndexByte(priorities, e.Priority) >= strings.IndexByte(priorities, least) &&
		(p.pid == 0 || p.pid == e.PID) && !e.Time.Before(p.since) &&
		(p.text == nil || p.text.MatchString(e.Text)) && slices.Contains(p.buffers, bufferOf(e))
}

func parseLogcat(args []string) (logcatPlan, error) {
	p := logcatPlan{follow: true, tail: -1, tags: map[string]byte{"*": 'V'}}
	for len(args) > 0 {
		word := args[0]
		switch word {
		case "-d":
			p.follow, args = false, args[1:]
			continue
		case "-c", "--clear":
			p.clear, args = true, args[1:]
			continue
		case "-s":
			p.tags["*"], args = 'S', args[1:]
			continue
		}
		value, rest, ok := logcatOption(args)
		if !ok {
			if strings.HasPrefix(word, "-") {
				return p, fmt.Errorf("unrecognized option: %s", word)
			}
			if err := p.filter(word); err != nil {
				return p, err
			}
			args = args[1:]
			continue
		}
		if err := p.option(strings.TrimSuffix(word, value), value); err != nil {
			return p, err
		}
		args = rest
	}
	if p.buffers == nil {
		p.buffers = []string{"main", "system", "crash"}
	}
	return p, nil
}

func logcatOption(args []string) (value string, rest []string, ok bool) {
	for _, name := range []string{"-t", "-T", "-v", "-b", "-e", "--pid=", "--pid"} {
		if value, rest, ok = option(args, name); ok {
			return value, rest, true
		}
	}
	return "", args, false
}

func (p *logcatPlan) option(name, value string) (err error) {
	switch name {
	case "-t", "-T":
		if name == "-t" {
			p.follow = false
		}
		if p.tail, err = strconv.Atoi(value); err == nil {
			return nil
		}
		p.tail = -1
		p.since, err = parseLogTime(value)
	case "-v":
		err = p.style(value)
	case "-b":
		for name := range strings.SplitSeq(value, ",") {
			if name == "all" || name == "default" {
				p.buffers = append(p.buffers, "main", "system", "crash")
			}
			p.buffers = append(p.buffers, name)
		}
	case "-e":
		p.text, err = regexp.Compile(value)
	default:
		p.pid, err = strconv.Atoi(value)
	}
	return err
}

func (p *logcatPlan) style(value string) error {
	for word := range strings.SplitSeq(value, ",") {
		switch word {
		case "threadtime", "time", "brief", "raw":
			p.format = word
		case "epoch":
			p.epoch = true
		case "year":
			p.year = true
		case "printable", "color":
		default:
			return fmt.Errorf("invalid parameter %q to -v", value)
		}
	}
	return nil
}

// parseLogTime reads the times that -t and -T take.
func parseLogTime(value string) (time.Time, error) {
	now := time.Now()
	if at, err := time.ParseInLocation("01-02 15:04:05.999", value, now.Location()); err == nil {
		return at.AddDate(now.Year(), 0, 0), nil
	}
	if at, err := time.ParseInLocation("2006-01-02 15:04:05.999", value, now.Location()); err == nil {
		return at, nil
	}
	seconds, err := strconv.ParseFloat(value, 64)
	if err != nil || seconds < 0 || seconds > 1e12 {
		return time.Time{}, fmt.Errorf("%q not in time format", value)
	}
	return time.UnixMilli(int64(seconds * 1000)), nil
}

var errFilter = errors.New("invalid filter expression")

// filter is TAG:PRIORITY.
func (p *logcatPlan) filter(word string) error {
	tag, level, found := strings.Cut(word, ":")
	if !found {
		level = "V"
	}
	level = strings.ToUpper(level)
	if level == "*" {
		level = "V"
	}
	if tag == "" || len(level) != 1 || !strings.Contains(priorities, level) {
		return fmt.Errorf("%w '%s'", errFilter, word)
	}
	p.tags[tag] = level[0]
	return nil
}
