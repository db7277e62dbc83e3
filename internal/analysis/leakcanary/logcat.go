package leakcanary

import (
	"regexp"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// headers match the header of a line in the forms of logcat (logprint.cpp of
// AOSP's liblog) and of Android Studio. Their groups are pid, tid, tag and
// message, where the form contains them.
var headers = []*regexp.Regexp{
	// threadtime: 11-02 10:00:00.000 1234 1256 D LeakCanary: message; the pid
	// may be preceded by a user ID.
	regexp.MustCompile(`^\s*(?:\d{4}-)?\d\d-\d\d +\d\d:\d\d:\d\d\.\d+ +(?:[+-]\d{4} +)?(?:[a-z]\S* +)?` +
		`(?P<pid>\d+) +(?P<tid>\d+) [VDIWEFA] (?P<tag>.*?) *: ?(?P<message>.*)$`),
	// time, brief and tag: 11-02 10:00:00.000 D/LeakCanary( 1234): message, and
	// the form of older versions of Android Studio: 2019-11-02 10:00:00.000
	// 1234-1256/com.shop D/LeakCanary: message.
	regexp.MustCompile(`^\s*(?:(?:\d{4}-)?\d\d-\d\d +\d\d:\d\d:\d\d\.\d+:? +)?(?:(?P<pid>\d+)-(?P<tid>\d+)/\S+ +)?` +
		`[VDIWEFA]/(?P<tag>[^(:]*?) *(?:\( *(?P<process>\d+)\))?: ?(?P<message>.*)$`),
	// Android Studio: 2023-11-02 10:00:00.000 1234-1256 LeakCanary com.shop D
	// message.
	regexp.MustCompile(`^\s*\d{4}-\d\d-\d\d +\d\d:\d\d:\d\d\.\d+ +(?P<pid>\d+)-(?P<tid>\d+) +(?P<tag>\S+) +\S+ +` +
		`[VDIWEFA] ? ?(?P<message>.*)$`),
	// long: the message is on the lines below.
	regexp.MustCompile(`^\[ +(?:\d{4}-)?\d\d-\d\d +\d\d:\d\d:\d\d\.\d+ +(?P<pid>\d+): *(?P<tid>\d+) ` +
		`[VDIWEFA]/(?P<tag>.*?) *\]$`),
}

// origin identifies the source of a line in a logcat: each report is written by
// one thread.
type origin struct{ pid, tid, tag string }

// entry is a line in a logcat that has a header.
type entry struct {
	origin
	message string
}

// parseEntry returns the entry of a line, or false if the line has no header.
func parseEntry(line string) (entry, bool) {
	if !mayBeEntry(line) {
		return entry{}, false
	}
	for _, h := range headers {
		m := h.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var e entry
		for i, name := range h.SubexpNames() {
			switch {
			case m[i] == "":
			case name == "pid", name == "process":
				e.pid = m[i]
			case name == "tid":
				e.tid = m[i]
			case name == "tag":
				e.tag = m[i]
			case name == "message":
				e.message = m[i]
			}
		}
		return e, true
	}
	return entry{}, false
}

// mayBeEntry is a quick check that precedes the regular expressions: each
// header begins with a digit, a bracket or a priority.
func mayBeEntry(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return line != "" && (line[0] == '[' || line[0] >= '0' && line[0] <= '9' || len(line) > 1 && line[1] == '/')
}

func entryMessage(line string) string {
	e, _ := parseEntry(line)
	return e.message
}

// started matches the lines that AndroidJUnitRunner logs before and after a
// test (LogRunListener): started: METHOD(CLASS), finished: METHOD(CLASS).
var started = regexp.MustCompile(`^(started|finished): (.+)\(([^()]+)\)$`)

// readLogcat reads the reports in a logcat. A report is logged line by line or
// in several messages, with lines of other tags, threads and processes in
// between. A line without a header belongs to the message above it.
func (c *collection) readLogcat(input []byte, test string) {
	var (
		open    = map[origin]*parser{}
		order   []origin
		running = map[string]string{} // running tests by pid
		last    origin
	)
	for line := range lines(input) {
		e, ok := parseEntry(line)
		switch {
		case ok:
			last = e.origin
		case strings.HasPrefix(line, "--------- "): // beginning of main
			continue
		default:
			e = entry{last, line}
		}
		if m := started.FindStringSubmatch(e.message); m != nil && e.tag == "TestRunner" {
			delete(running, e.pid)
			if m[1] == "started" && len(running) < maxTests {
				running[e.pid] = m[3] + "#" + m[2]
			}
		}
		p := open[e.origin]
		if p == nil {
			if !isBegin(e.message) {
				c.stray(e.message)
				continue
			}
			p = &parser{into: c}
			open[e.origin] = p
			order = append(order, e.origin)
		}
		if isBegin(e.message) {
			p.test = text.Head(firstOf(test, running[e.pid]), maxName)
		}
		p.line(e.message)
	}
	for _, o := range order {
		open[o].end()
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// readText reads the reports in plain text.
func (c *collection) readText(input []byte, test string) {
	p := &parser{into: c, test: test}
	for line := range lines(input) {
		p.line(line)
	}
	p.end()
}
