package androidtext

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LogcatLists is the first API level whose logcat accepts lists of buffers,
// long options, -e, -m and times in seconds, supports more formats and uses
// threadtime by default. logcatDivides is the first level that prints the
// buffer's name even if there is only one buffer (Logcat::PrintDividers).
const (
	LogcatLists   = 24
	logcatDivides = 30
)

// LogEntry is a log entry with one line of text.
type LogEntry struct {
	Time     time.Time
	Buffer   string
	PID, TID int
	// Priority is one of V, D, I, W, E and F.
	Priority  byte
	Tag, Text string
}

const logPriorities = "VDIWEFS"

// LogPriority returns the priority for the first letter of text; ok is false if
// that letter is not a priority.
func LogPriority(text string) (p byte, ok bool) {
	if text == "" {
		return 0, false
	}
	p = strings.ToUpper(text[:1])[0]
	return p, strings.IndexByte(logPriorities, p) >= 0
}

// LogFormat is the format in which entries are printed.
type LogFormat struct {
	// Verb is one of brief, process, tag, thread, raw, time, threadtime and
	// long.
	Verb                            string
	Epoch, Year, Microseconds, Zone bool
	UTC, Monotonic                  bool
}

// LogQuery holds the parsed arguments of logcat.
type LogQuery struct {
	API     int
	Format  LogFormat
	Buffers []string
	// Dump makes logcat exit after the existing entries; Clear removes the
	// existing entries; Sizes prints LogSizes instead.
	Dump, Clear, Sizes bool
	// Newest bounds the number of existing entries that are printed, and Most
	// bounds the total number of printed entries; a negative value means
	// unlimited. From is the time of the oldest entry to print.
	Newest, Most int
	From         time.Time
	PID          int
	Pattern      *regexp.Regexp
	// Silent (-s) hides tags without a rule; Least is the lowest visible
	// priority by tag, with "*" for all other tags.
	Silent bool
	Least  map[string]byte
}

// logBuffers lists the log buffers that every phone has.
var logBuffers = []string{"main", "radio", "events", "system", "crash", "kernel"}

var defaultLogBuffers = []string{"main", "system", "crash"}

// logOptions maps long options to their letters. P stands for --pid, which has
// no short form.
var logOptions = map[string]byte{
	"--pid": 'P', "--format": 'v', "--buffer": 'b', "--regex": 'e', "--max-count": 'm', "--clear": 'c',
	"--buffer-size": 'g', "--dividers": 'D',
}

// logTakesValue lists the options that take a value.
const logTakesValue = "vtTbemGnrP"

// problemf formats an error line.
func problemf(format string, args ...any) string { return fmt.Sprintf(format+"\n", args...) }

// logWords splits the arguments of logcat. It passes every option to the
// function each, as a letter and a value, and every filter, with 0 as the
// letter. It returns the first error, or "" if there is none.
func logWords(api int, args []string, each func(option byte, value, word string) string) string {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if len(word) < 2 || word[0] != '-' {
			if problem := each(0, word, word); problem != "" {
				return problem
			}
			continue
		}
		option, value, has := word[1], word[2:], len(word) > 2
		if strings.HasPrefix(word, "--") {
			name := ""
			if name, value, has = strings.Cut(word, "="); api < LogcatLists || logOptions[name] == 0 {
				return problemf("logcat: invalid option -- %s", strings.TrimLeft(word, "-"))
			}
			option = logOptions[name]
		} else if option == 'P' {
			return problemf("logcat: invalid option -- P")
		}
		if !has && strings.IndexByte(logTakesValue, option) >= 0 {
			if i++; i >= len(args) {
				return problemf("logcat: option requires an argument -- %c", option)
			}
			value = args[i]
		}
		if problem := each(option, value, word); problem != "" {
			return problem
		}
	}
	return ""
}

// ParseLogcat parses the arguments of logcat (system/logging
// logcat/logcat.cpp). now provides the time zone, and the year, which the
// arguments lack. If an argument is invalid, problem is the message that logcat
// prints to standard error.
func ParseLogcat(api int, args []string, now time.Time) (q LogQuery, problem string) {
	q = LogQuery{API: api, Newest: -1, Most: -1, Least: map[string]byte{}, Format: LogFormat{Verb: "brief"}}
	if api >= LogcatLists {
		q.Format.Verb = "threadtime"
	}
	problem = logWords(api, args, func(option byte, value, word string) string {
		return q.take(option, value, word, now)
	})
	if q.Buffers == nil {
		q.Buffers = defaultLogBuffers
	}
	return q, problem
}

func (q *LogQuery) take(option byte, value, word string, now time.Time) (problem string) {
	var err error
	lists := q.API >= LogcatLists
	switch {
	case option == 0:
		return q.filter(word)
	case option == 'd':
		q.Dump = true
	case option == 's':
		q.Silent = true
	case option == 'v' && !q.Format.take(value, q.API):
		if lists {
			return problemf("logcat: Invalid parameter \"%s\" to -v", value)
		}
		return problemf("Invalid parameter to -v")
	case option == 'b':
		return q.buffers(value)
	case option == 't' || option == 'T':
		q.Dump = q.Dump || option == 't'
		n, err := strconv.Atoi(value)
		if err == nil {
			q.Newest = max(n, 1)
			return ""
		}
		at, ok := logTime(value, q.API, now)
		if !ok {
			return problemf("logcat: -%c \"%s\" not in time format", option, value)
		}
		q.From = at
	case option == 'c':
		q.Clear = true
	case option == 'g':
		q.Sizes = true
	case option == 'e' && lists:
		if q.Pattern, err = regexp.Compile(value); err != nil {
			return problemf("logcat: invalid option -- e")
		}
	case option == 'm' && lists:
		n, err := strconv.Atoi(value)
		if err != nil {
			return problemf("logcat: invalid option -- m")
		}
		q.Most = max(n, 0)
	case option == 'P':
		if q.PID, err = strconv.Atoi(value); err != nil || q.PID <= 0 {
			return problemf("logcat: --pid=%s is not a pid", value)
		}
	case strings.IndexByte("vGDnr", option) < 0:
		return problemf("logcat: invalid option -- %s", strings.TrimLeft(word, "-"))
	}
	return ""
}

// filter parses a TAG:PRIORITY filter (liblog logprint.cpp,
// android_log_addFilterRule).
func (q *LogQuery) filter(word string) (problem string) {
	tag, priority, ok := strings.Cut(word, ":")
	least, valid := byte('V'), true
	if ok && priority != "" && priority[0] != '*' {
		least, valid = LogPriority(priority)
	}
	if tag == "" || !valid {
		return problemf("Invalid filter expression '%s'", word)
	}
	q.Least[tag] = least
	return ""
}

func (q *LogQuery) buffers(value string) (problem string) {
	names := []string{value}
	if q.API >= LogcatLists {
		names = strings.Split(value, ",")
	}
	for _, name := range names {
		switch {
		case name == "default":
			q.Buffers = append(q.Buffers, defaultLogBuffers...)
		case name == "all":
			q.Buffers = append(q.Buffers, logBuffers...)
		case slices.Contains(logBuffers, name):
			q.Buffers = append(q.Buffers, name)
		case q.API >= LogcatLists:
			return problemf("logcat: unknown buffer -b %s", name)
		default:
			return problemf("Unable to open log device '%s'", name)
		}
	}
	return ""
}

// take parses the value of -v: a format or modifiers.
func (f *LogFormat) take(text string, api int) bool {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		switch word {
		case "brief", "process", "tag", "thread", "raw", "time", "threadtime", "long":
			f.Verb = word
			continue
		}
		if api < LogcatLists {
			return false
		}
		switch word {
		case "epoch":
			f.Epoch = true
		case "year":
			f.Year = true
		case "usec":
			f.Microseconds = true
		case "zone":
			f.Zone = true
		case "UTC":
			f.Zone, f.UTC = true, true
		case "monotonic":
			f.Monotonic = true
		case "color", "printable":
		default:
			return false
		}
	}
	return text != ""
}

// logTime parses the time given to -t or -T.
func logTime(text string, api int, now time.Time) (time.Time, bool) {
	if at, err := time.ParseInLocation("01-02 15:04:05.999999999", text, now.Location()); err == nil {
		return at.AddDate(now.Year()-at.Year(), 0, 0), true
	}
	if api < LogcatLists {
		return time.Time{}, false
	}
	if at, err := time.ParseInLocation("2006-01-02 15:04:05.999999999", text, now.Location()); err == nil {
		return at, true
	}
	seconds, fraction, _ := strings.Cut(text, ".")
	s, err := strconv.ParseUint(seconds, 10, 40)
	ns, fractionErr := strconv.ParseUint((fraction + "000000000")[:9], 10, 32)
	if err != nil || fractionErr != nil {
		return time.Time{}, false
	}
	return time.Unix(int64(s), int64(ns)), true
}

// Shows reports whether the query selects an entry, ignoring the limits on the
// number of entries.
func (q *LogQuery) Shows(e *LogEntry) bool {
	if !slices.Contains(q.Buffers, e.Buffer) || e.Time.Before(q.From) || q.PID != 0 && e.PID != q.PID ||
		q.Pattern != nil && !q.Pattern.MatchString(e.Text) {
		return false
	}
	least, ok := q.Least[e.Tag]
	if !ok {
		least, ok = q.Least["*"]
	}
	switch {
	case !ok && q.Silent:
		least = 'S'
	case !ok:
		least = 'V'
	}
	return strings.IndexByte(logPriorities, e.Priority) >= strings.IndexByte(logPriorities, least)
}

// LogPrinter formats the entries that one run of logcat prints.
type LogPrinter struct {
	Query LogQuery
	// Boot is the time of the boot, from which monotonic timestamps count.
	Boot  time.Time
	begun map[string]bool
}

// Text formats an entry (liblog logprint.cpp, android_log_formatLogLine). The
// first entry of each buffer is preceded by the buffer's name.
func (p *LogPrinter) Text(e *LogEntry) string {
	var b strings.Builder
	if p.begun == nil {
		p.begun = map[string]bool{}
	}
	if !p.begun[e.Buffer] && (len(p.Query.Buffers) > 1 || p.Query.API >= logcatDivides) {
		fmt.Fprintf(&b, "--------- beginning of %s\n", e.Buffer)
	}
	p.begun[e.Buffer] = true
	at, after := p.time(e.Time), ""
	switch p.Query.Format.Verb {
	case "brief":
		fmt.Fprintf(&b, "%c/%-8s(%5d): ", e.Priority, e.Tag, e.PID)
	case "process":
		fmt.Fprintf(&b, "%c(%5d) ", e.Priority, e.PID)
		after = fmt.Sprintf("  (%s)", e.Tag)
	case "tag":
		fmt.Fprintf(&b, "%c/%-8s: ", e.Priority, e.Tag)
	case "thread":
		fmt.Fprintf(&b, "%c(%5d:%5d) ", e.Priority, e.PID, e.TID)
	case "time":
		fmt.Fprintf(&b, "%s %c/%-8s(%5d): ", at, e.Priority, e.Tag, e.PID)
	case "threadtime":
		fmt.Fprintf(&b, "%s %5d %5d %c %-8s: ", at, e.PID, e.TID, e.Priority, e.Tag)
	case "long":
		fmt.Fprintf(&b, "[ %s %5d:%5d %c/%-8s ]\n", at, e.PID, e.TID, e.Priority, e.Tag)
		after = "\n"
	}
	b.WriteString(e.Text + after + "\n")
	return b.String()
}

func (p *LogPrinter) time(at time.Time) string {
	f := p.Query.Format
	fraction := fmt.Sprintf(".%03d", at.Nanosecond()/1e6)
	if f.Microseconds {
		fraction = fmt.Sprintf(".%06d", at.Nanosecond()/1e3)
	}
	switch {
	case f.Epoch:
		return fmt.Sprintf("%19d%s", at.Unix(), fraction)
	case f.Monotonic:
		up := at.Sub(p.Boot)
		return fmt.Sprintf("%6d.%03d", int64(up/time.Second), up.Milliseconds()%1000)
	}
	if f.UTC {
		at = at.UTC()
	}
	layout, zone := "01-02 15:04:05", ""
	if f.Year {
		layout = "2006-" + layout
	}
	if f.Zone {
		zone = at.Format(" -0700")
	}
	return at.Format(layout) + fraction + zone
}

// LogSizes returns the output of logcat -g.
func LogSizes() string {
	var b strings.Builder
	for _, name := range defaultLogBuffers {
		b.WriteString(name + ": ring buffer is 256 KiB (64 KiB consumed), max entry is 5120 B, max payload is 4068 B\n")
	}
	return b.String()
}
