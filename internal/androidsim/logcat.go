package androidsim

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// logcatLists is the version from which logcat takes lists of buffers, long options,
// -e, -m and seconds, knows more formats, and prints threadtime of its own accord.
const logcatLists = 24

// logFormat is how an entry is printed.
type logFormat struct {
	verb                          string
	epoch, year, usec, zone, mono bool
}

// logQuery is one run of logcat.
type logQuery struct {
	format  logFormat
	buffers []string
	dump    bool
	// newest bounds how many entries there are, less than 0 for no bound; from is the
	// oldest.
	newest, most int
	from         time.Time
	pid          int
	pattern      *regexp.Regexp
	silent       bool
	// least is the least priority of a tag.
	least map[string]byte
}

// logBuffers are those of every phone; the kernel's is kept by debuggable builds alone.
var logBuffers = []string{"main", "radio", "events", "system", "crash", "kernel"}

const logPriorities = "VDIWEFS"

// logPoll is how often logcat that follows the log looks at it, in device time.
const logPoll = 2 * time.Second

func logcat(c *call) int {
	q, status := c.logQuery()
	if status >= 0 {
		return status
	}
	printed := map[string]bool{}
	lines := c.phone.logged(c.cred, q)
	if q.newest >= 0 && len(lines) > q.newest {
		lines = lines[len(lines)-q.newest:]
	}
	for {
		for _, l := range lines {
			if q.most == 0 {
				return 0
			}
			q.most--
			c.printLog(q, l, printed)
			q.from = l.at.Add(1)
		}
		c.out.Flush()
		if q.dump || q.most == 0 {
			return 0
		}
		// Nothing older comes any more: a log that is followed all night costs no more each time.
		if seen := c.phone.wall().Add(-time.Second); seen.After(q.from) {
			q.from = seen
		}
		if c.phone.now().wait(c.ctx, logPoll) != nil {
			return statusOf(c.ctx)
		}
		lines = c.phone.logged(c.cred, q)
	}
}

// logged are the entries that are asked for and that c may see: all, or its own.
func (p *Phone) logged(c cred, q logQuery) []logLine {
	return slices.DeleteFunc(p.log(q.from), func(l logLine) bool {
		switch {
		case c.uid != uidRoot && c.uid != uidShell && c.uid != uidSystem && l.uid != c.uid,
			!slices.Contains(q.buffers, l.buffer), l.buffer == "kernel" && p.opt.BuildType == "user",
			l.at.Before(q.from), q.pid != 0 && l.pid != q.pid, q.pattern != nil && !q.pattern.MatchString(l.text):
			return true
		}
		least, ok := q.least[l.tag]
		if !ok {
			least, ok = q.least["*"]
		}
		if !ok {
			least = 'V'
			if q.silent {
				least = 'S'
			}
		}
		return strings.IndexByte(logPriorities, l.priority) < strings.IndexByte(logPriorities, least)
	})
}

// logQuery reads the options; a status of at least 0 ends the command.
func (c *call) logQuery() (q logQuery, status int) {
	new := c.phone.opt.API >= logcatLists
	q = logQuery{newest: -1, most: -1, least: map[string]byte{}, format: logFormat{verb: "brief"}}
	if new {
		q.format.verb = "threadtime"
	}
	fail := func(format string, args ...any) (logQuery, int) {
		c.out.Flush()
		fmt.Fprintf(c.errs, format+"\n", args...)
		return q, 255
	}
	args := c.args[1:]
	for i := 0; i < len(args); i++ {
		a := args[i]
		if name, value, ok := strings.Cut(a, "="); ok && new && longLogOptions[name] != "" {
			a = longLogOptions[name] + value
		} else if new && longLogOptions[a] != "" {
			a = longLogOptions[a]
		}
		if !strings.HasPrefix(a, "-") || len(a) < 2 {
			tag, priority, ok := strings.Cut(a, ":")
			least := byte('V')
			if ok && priority != "" {
				least = strings.ToUpper(priority)[0]
			}
			if strings.IndexByte(logPriorities, least) < 0 {
				return fail("Invalid filter expression '%s'", a)
			}
			q.least[tag] = least
			continue
		}
		option, value := a[1], a[2:]
		if strings.IndexByte("vtTbemGnrfP", option) >= 0 && value == "" {
			if i++; i >= len(args) {
				return fail("logcat: option requires an argument -- %c", option)
			}
			value = args[i]
		}
		switch option {
		case 'd':
			q.dump = true
		case 's':
			q.silent = true
		case 'v':
			if !q.format.take(value, c.phone.opt.API) {
				if new {
					return fail("logcat: Invalid parameter \"%s\" to -v", value)
				}
				return fail("Invalid parameter to -v")
			}
		case 'b':
			if bad := q.take(value, new); bad != "" {
				if new {
					return fail("logcat: unknown buffer -b %s", bad)
				}
				return fail("Unable to open log device '%s'", bad)
			}
		case 't', 'T':
			q.dump = q.dump || option == 't'
			if n, err := strconv.Atoi(value); err == nil {
				q.newest = max(n, 1)
			} else if at, ok := c.logTime(value); ok {
				q.from = at
			} else {
				return fail("logcat: -%c \"%s\" not in time format", option, value)
			}
		case 'c':
			c.phone.clearLog()
			return q, 0
		case 'g':
			for _, b := range []string{"main", "system", "crash"} {
				c.printf("%s: ring buffer is 256 KiB (64 KiB consumed), max entry is 5120 B, max payload is 4068 B\n", b)
			}
			return q, 0
		case 'G', 'D', 'n', 'r':
		case 'e':
			re, err := regexp.Compile(value)
			if err != nil || !new {
				return fail("logcat: invalid option -- e")
			}
			q.pattern = re
		case 'm':
			n, err := strconv.Atoi(value)
			if err != nil || !new {
				return fail("logcat: invalid option -- m")
			}
			q.most = max(n, 0)
		case 'P': // --pid
			n, err := strconv.Atoi(value)
			if err != nil || n <= 0 {
				return fail("logcat: --pid=%s is not a pid", value)
			}
			q.pid = n
		default:
			return fail("logcat: invalid option -- %s", strings.TrimLeft(a, "-"))
		}
	}
	if q.buffers == nil {
		q.take("default", true)
	}
	return q, -1
}

// longLogOptions are the long names of options that came with Android 7.
var longLogOptions = map[string]string{
	"--pid": "-P", "--format": "-v", "--buffer": "-b", "--regex": "-e", "--max-count": "-m", "--clear": "-c", "--buffer-size": "-g", "--dividers": "-D",
}

// take reads the value of -v. Modifiers stand beside a verb.
func (f *logFormat) take(text string, api int) bool {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		switch word {
		case "brief", "process", "tag", "thread", "raw", "time", "threadtime", "long":
			f.verb = word
			continue
		}
		if api < logcatLists {
			return false
		}
		switch word {
		case "epoch":
			f.epoch = true
		case "year":
			f.year = true
		case "usec":
			f.usec = true
		case "zone", "UTC":
			f.zone = true
		case "monotonic":
			f.mono = true
		case "color", "printable":
		default:
			return false
		}
	}
	return text != ""
}

// take reads the value of -b; it returns what is no buffer.
func (q *logQuery) take(text string, lists bool) (bad string) {
	names := []string{text}
	if lists {
		names = strings.Split(text, ",")
	}
	for _, name := range names {
		switch {
		case name == "default":
			q.buffers = append(q.buffers, "main", "system", "crash")
		case name == "all":
			q.buffers = append(q.buffers, logBuffers...)
		case slices.Contains(logBuffers, name):
			q.buffers = append(q.buffers, name)
		default:
			return name
		}
	}
	return ""
}

// logTime reads the time of -t and -T; the phone's zone is UTC.
func (c *call) logTime(text string) (time.Time, bool) {
	if at, err := time.Parse("01-02 15:04:05.999999999", text); err == nil {
		return at.AddDate(c.phone.wall().UTC().Year()-at.Year(), 0, 0), true
	}
	if c.phone.opt.API < logcatLists {
		return time.Time{}, false
	}
	if at, err := time.Parse("2006-01-02 15:04:05.999999999", text); err == nil {
		return at, true
	}
	seconds, fraction, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	ns, fractionErr := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil || fractionErr != nil || s < 0 || s > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(s, ns), true
}

// clearLog forgets what is in the log.
func (p *Phone) clearLog() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines, p.cleared = nil, p.wall()
}

// printLog prints one entry (liblog, logprint.c), after the name of its buffer where
// there are several.
func (c *call) printLog(q logQuery, l logLine, printed map[string]bool) {
	if len(q.buffers) > 1 && !printed[l.buffer] {
		c.printf("--------- beginning of %s\n", l.buffer)
	}
	printed[l.buffer] = true
	at := q.format.time(l.at, c.phone)
	before, after := "", ""
	switch q.format.verb {
	case "brief":
		before = fmt.Sprintf("%c/%-8s(%5d): ", l.priority, l.tag, l.pid)
	case "process":
		before, after = fmt.Sprintf("%c(%5d) ", l.priority, l.pid), fmt.Sprintf("  (%s)", l.tag)
	case "tag":
		before = fmt.Sprintf("%c/%-8s: ", l.priority, l.tag)
	case "thread":
		before = fmt.Sprintf("%c(%5d:%5d) ", l.priority, l.pid, l.tid)
	case "time":
		before = fmt.Sprintf("%s %c/%-8s(%5d): ", at, l.priority, l.tag, l.pid)
	case "threadtime":
		before = fmt.Sprintf("%s %5d %5d %c %-8s: ", at, l.pid, l.tid, l.priority, l.tag)
	case "long":
		before, after = fmt.Sprintf("[ %s %5d:%5d %c/%-8s ]\n", at, l.pid, l.tid, l.priority, l.tag), "\n"
	}
	c.printf("%s%s%s\n", before, l.text, after)
}

// time is the time of an entry.
func (f logFormat) time(at time.Time, p *Phone) string {
	fraction := fmt.Sprintf(".%03d", at.Nanosecond()/1e6)
	if f.usec {
		fraction = fmt.Sprintf(".%06d", at.Nanosecond()/1e3)
	}
	switch {
	case f.epoch:
		return fmt.Sprintf("%19d%s", at.Unix(), fraction)
	case f.mono:
		p.mu.Lock()
		defer p.mu.Unlock()
		up := p.clock.up() - p.wall().Sub(at)
		return fmt.Sprintf("%6d%s", int64(up/time.Second), fmt.Sprintf(".%03d", up.Milliseconds()%1000))
	}
	layout := "01-02 15:04:05"
	if f.year {
		layout = "2006-" + layout
	}
	zone := ""
	if f.zone {
		zone = " +0000"
	}
	return at.UTC().Format(layout) + fraction + zone
}

// logTool puts an entry into the log (system/core, toolbox log; toybox since).
func logTool(c *call) int {
	tag, priority := "log", byte('I')
	words, ok := c.getopt("^t:p:", func(o byte, v string) {
		switch {
		case o == 't':
			tag = v
		case v != "":
			priority = strings.ToUpper(v)[0]
		}
	})
	if !ok || len(words) == 0 || strings.IndexByte(logPriorities, priority) < 0 {
		return c.failf("usage: log [-p priorityChar] [-t tag] message")
	}
	p := c.phone
	p.mu.Lock()
	defer p.mu.Unlock()
	text := strings.Join(words, " ")
	p.add(logLine{at: p.wall(), buffer: "main", pid: c.leader.pid, tid: c.leader.pid, uid: c.cred.uid, priority: priority, tag: tag[:min(len(tag), 128)], text: text[:min(len(text), 4068)]})
	return 0
}
