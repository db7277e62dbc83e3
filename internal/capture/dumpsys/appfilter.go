package dumpsys

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// AppFilter reduces device-wide output to the lines that are about one app.
type AppFilter struct {
	Package string
	// Lifetimes are the known lives of the app's processes.
	Lifetimes []Lifetime
}

// Lifetime is one life of a process.
type Lifetime struct {
	PID  int64
	Name string
	// From and To limit the time during which the process had the pid, on the
	// device's wall clock; a zero time is unknown. Before From and after To,
	// the pid may belong to another app.
	From, To time.Time
}

// Part is the part of a command's output that is about one app.
type Part struct {
	Text []byte
	// Kept is the number of lines in the part; All is the number of lines in
	// the whole output.
	Kept, All int
}

// String describes how much of the output was kept.
func (p Part) String() string { return fmt.Sprintf("%d of %d lines kept", p.Kept, p.All) }

// systemTags are the tags under which the system logs events of an app, in
// addition to the events am_* and wm_*. Other apps may use these tags, too.
var systemTags = map[string]bool{
	"ActivityManager": true, "ActivityTaskManager": true, "WindowManager": true, "AndroidRuntime": true,
	"lmkd": true, "lowmemorykiller": true, "killinfo": true, "kernel": true, "Out of memory": true, memoryLimiter: true,
	"libc": true, "DEBUG": true, "crash_dump32": true, "crash_dump64": true, "tombstoned": true,
	"art": true, "Zygote": true, "zygote": true, "zygote64": true, "Process": true,
}

func systemTag(tag string) bool {
	return systemTags[tag] || strings.HasPrefix(tag, "am_") || strings.HasPrefix(tag, "wm_")
}

// Logcat reduces a log in threadtime format to the entries about an app. It
// keeps the lines of the app's processes (the pid in a line is set by the log
// daemon, not by the process). It also keeps system lines (see systemTag) that
// contain the package of the app or the pid of one of its processes. If such a
// line belongs to a crash or ANR report, the other lines of this report are
// also kept. now is the device's wall clock, which supplies the year that the
// lines lack; a zero time is unknown.
func (a AppFilter) Logcat(text []byte, now time.Time) Part {
	f := logFilter{app: a, now: now, crashing: map[int64]bool{}, tomb: map[int64]*tombstone{}}
	for line := range bytes.Lines(text) {
		f.line(line)
	}
	out := Part{All: f.all}
	var b bytes.Buffer
	for _, l := range f.lines {
		if l.keep {
			b.Write(l.text)
			out.Kept += l.counts
		}
	}
	out.Text = b.Bytes()
	return out
}

// logFilter decides for each line whether it is kept. A later line may change
// an earlier decision, which is therefore stored in lines.
type logFilter struct {
	app   AppFilter
	now   time.Time
	all   int
	lines []filteredLine

	// anr is the first line of the current ANR report, or nil if no report
	// about the app is being read.
	anr *logEntry
	// fatal is the FATAL EXCEPTION entry whose process is not yet known;
	// fatalAt is its index in lines. crashing holds the pids of the app that
	// are known only from a crash.
	fatal    *logEntry
	fatalAt  int
	crashing map[int64]bool
	// tomb holds the tombstones that are still being written, by the pid of the
	// writer.
	tomb map[int64]*tombstone
}

type filteredLine struct {
	text   []byte
	keep   bool
	counts int
}

// tombstone is a report of a native crash. Its first lines do not name the
// process.
type tombstone struct {
	lines []int
	told  bool // a line has named the process
	own   bool
}

func (f *logFilter) line(line []byte) {
	if bytes.HasPrefix(line, []byte("--------- ")) {
		f.lines = append(f.lines, filteredLine{text: line, keep: true})
		return
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	f.all++
	e, ok := entryOf(strings.TrimRight(string(line[:min(len(line), maxLogLine)]), "\r\n"))
	if !ok {
		return
	}
	f.lines = append(f.lines, filteredLine{text: line, counts: 1})
	at := len(f.lines) - 1
	f.lines[at].keep = f.keeps(e, at)
}

func (f *logFilter) keeps(e logEntry, at int) bool {
	msg := strings.TrimSpace(e.msg)
	report := f.report(e, msg, at)
	return report || f.own(e) || systemTag(e.tag) && (f.app.named(msg) || f.about(e, msg))
}

// own reports whether a process of the app has logged the entry.
func (f *logFilter) own(e logEntry) bool {
	return f.life(e.pid, "", e.time)
}

// life reports whether a pid belonged to a process of the app at the given
// time. Unless name is empty, the process must also have that name.
func (f *logFilter) life(pid int64, name, stamp string) bool {
	for _, l := range f.app.Lifetimes {
		if l.PID == pid && pid > 0 && (name == "" || nameFits(name, l.Name)) && f.within(stamp, l) {
			return true
		}
	}
	return false
}

// within reports whether a time in the log is within a life. An invalid time
// counts as within.
func (f *logFilter) within(stamp string, l Lifetime) bool {
	if f.now.IsZero() {
		return true
	}
	at, err := time.Parse("2006-01-02 15:04:05", fmt.Sprintf("%04d-%s", f.now.Year(), stamp)) // accepts fractions, too
	if err != nil {
		return true
	}
	if at.After(f.now.AddDate(0, 0, 1)) { // the line is from the previous year
		at = at.AddDate(-1, 0, 0)
	}
	return (l.From.IsZero() || !at.Before(l.From)) && (l.To.IsZero() || !at.After(l.To))
}

// aboutPID matches messages of the system that identify a process by its pid,
// with no name or with a name that the kernel has truncated: lmkd.cpp
// (killinfo), com_android_internal_os_Zygote.cpp (SigChldHandler),
// android_util_Process.cpp (android_os_Process_sendSignal) and crash_dump.cpp.
var aboutPID = map[string]*regexp.Regexp{
	"killinfo":     regexp.MustCompile(`^\[?([0-9]+),`),
	"Zygote":       regexp.MustCompile(`^Process ([0-9]+) exited `),
	"Process":      regexp.MustCompile(`^Sending signal\. PID: ([0-9]+) SIG: `),
	memoryLimiter:  regexp.MustCompile(`(?:^| )pid=([0-9]+) `),
	"crash_dump32": regexp.MustCompile(`^performing dump of process ([0-9]+) `),
	"crash_dump64": regexp.MustCompile(`^performing dump of process ([0-9]+) `),
}

// about reports whether a line of the system contains the pid of a process of
// the app.
func (f *logFilter) about(e logEntry, msg string) bool {
	if pid, name, _, ok := victimOf(msg); ok && lowMemoryTag(e.tag) {
		return f.life(pid, name, e.time)
	}
	form := aboutPID[e.tag]
	if form == nil {
		return false
	}
	m := form.FindStringSubmatch(clip(msg, maxClip))
	if m == nil {
		return false
	}
	pid, ok := wholeNumber(m[1])
	return ok && f.life(pid, "", e.time)
}

// report tracks reports that consist of several lines, only one of which names
// the process.
func (f *logFilter) report(e logEntry, msg string, at int) bool {
	switch e.tag {
	case "AndroidRuntime":
		return f.crash(e, msg, at)
	case "DEBUG", "crash_dump32", "crash_dump64":
		return f.tombstone(e, msg, at)
	case "ActivityManager":
		return f.notResponding(e, msg)
	}
	return false
}

// crash keeps the FATAL EXCEPTION block of a process that was never seen alive.
// The process itself prints the block, so the pid in the block must be the pid
// of the line.
func (f *logFilter) crash(e logEntry, msg string, at int) bool {
	if strings.HasPrefix(msg, "FATAL EXCEPTION: ") {
		f.fatal, f.fatalAt = &e, at
		delete(f.crashing, e.pid)
		return false
	}
	if f.fatal != nil && f.fatal.pid == e.pid {
		name, pid, told := crashedProcess(msg)
		if told && pid == e.pid && f.app.named(name) {
			f.crashing[e.pid] = true
			f.lines[f.fatalAt].keep = true
		}
		f.fatal = nil
	}
	return f.crashing[e.pid]
}

// tombstone keeps the lines that crash_dump prints about a process of the app
// (debuggerd tombstone.cpp): they begin with a line of stars, and a later line
// names the process.
func (f *logFilter) tombstone(e logEntry, msg string, at int) bool {
	if strings.HasPrefix(msg, "*** *** ***") {
		f.tomb[e.pid] = &tombstone{}
	}
	t := f.tomb[e.pid]
	if t == nil {
		return false
	}
	if strings.HasPrefix(msg, "pid: ") {
		_, rest, named := strings.Cut(msg, ">>> ")
		name, _, closed := strings.Cut(rest, " <<<")
		t.told, t.own = true, named && closed && f.app.named(name)
		for _, i := range t.lines {
			f.lines[i].keep = f.lines[i].keep || t.own
		}
		t.lines = nil
	}
	if !t.told {
		t.lines = append(t.lines, at)
	}
	return t.told && t.own
}

// anrWords are the beginnings of the lines below "ANR in NAME" that are about
// the app. Below these lines, the report lists the load of all processes
// (ProcessErrorStateRecord.java, appNotResponding).
var anrWords = []string{"PID: ", "Reason: ", "Parent: ", "ErrorId: ", "Frozen: ", "Load: "}

func (f *logFilter) notResponding(e logEntry, msg string) bool {
	if name, ok := strings.CutPrefix(msg, "ANR in "); ok {
		f.anr = nil
		if f.app.named(name) {
			f.anr = &e
		}
		return f.anr != nil
	}
	if f.anr == nil || f.anr.pid != e.pid {
		return false
	}
	for _, word := range anrWords {
		if strings.HasPrefix(msg, word) {
			return true
		}
	}
	f.anr = nil
	return false
}

// named reports whether a string names the app, that is, contains its package
// as a whole name and not as the prefix of another package.
func (a AppFilter) named(text string) bool {
	return a.Package != "" && names(text, a.Package)
}

func names(text, pkg string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], pkg)
		if i < 0 {
			return false
		}
		at, end := from+i, from+i+len(pkg)
		// A full stop either ends a sentence, or is followed by the rest of
		// another package's name or by a class of this package.
		rest := strings.TrimPrefix(text[end:], ".")
		if (at == 0 || !ofName(text[at-1])) && (rest == "" || !ofName(rest[0])) {
			return true
		}
		from = end
	}
}

// ofName reports whether a byte can occur in the name of a package.
func ofName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.'
}

// filterLines keeps the lines for which keep returns true, and replaces each
// with the text that keep returns.
func filterLines(text []byte, keep func(line string) (string, bool)) Part {
	var out Part
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		out.All++
		body := strings.TrimRight(string(line), "\r\n")
		kept, ok := keep(body)
		if !ok {
			continue
		}
		out.Kept++
		b.WriteString(kept)
		b.Write(line[len(body):])
	}
	out.Text = b.Bytes()
	return out
}

// ExitInfo reduces dumpsys activity exit-info to the records of an app's
// package.
func (a AppFilter) ExitInfo(text []byte) Part {
	own := true
	return filterLines(text, func(line string) (string, bool) {
		if pkg, ok := strings.CutPrefix(strings.TrimSpace(line), "package: "); ok {
			own = pkg == a.Package
		}
		return line, own
	})
}

// Gfxinfo reduces dumpsys gfxinfo to the blocks of an app's processes.
func (a AppFilter) Gfxinfo(text []byte) Part {
	own := true
	return filterLines(text, func(line string) (string, bool) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "** Graphics info for pid "); ok {
			pid, _ := processOf(rest)
			own = pid.Known && a.has(pid.N)
		}
		return line, own
	})
}

// GPU reduces dumpsys gpu --gpumem to the totals of each GPU and the memory of
// an app's processes.
func (a AppFilter) GPU(text []byte) Part {
	return filterLines(text, func(line string) (string, bool) {
		trimmed := strings.TrimSpace(line)
		rest, isProcess := strings.CutPrefix(trimmed, "Proc ")
		if !isProcess {
			return line, strings.HasPrefix(trimmed, "Memory snapshot for GPU ") ||
				strings.HasPrefix(trimmed, "Global total: ")
		}
		digits, _, _ := strings.Cut(rest, " ")
		pid, ok := wholeNumber(digits)
		return line, ok && a.has(pid)
	})
}

// has reports whether a process of the app has this pid.
func (a AppFilter) has(pid int64) bool {
	for _, l := range a.Lifetimes {
		if l.PID == pid {
			return true
		}
	}
	return false
}

// Replacements for the names of layers in the lists of buffers.
const (
	// OtherApp replaces a layer name that contains the package of another app.
	OtherApp = "(another app)"
	// HiddenTitle replaces a layer name that may be a title written by a
	// person.
	HiddenTitle = "(title hidden)"
)

// SurfaceFlinger reduces dumpsys SurfaceFlinger to the lists of buffers and the
// other lines that name the app. In the lists, the names of other apps' layers
// are replaced.
func (a AppFilter) SurfaceFlinger(text []byte) Part {
	allocated, imported := false, false
	return filterLines(text, func(line string) (string, bool) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "GraphicBufferAllocator buffers:", trimmed == "Allocated buffers:":
			allocated = true
			return line, true
		case allocated && strings.HasPrefix(trimmed, "0x"):
			return a.requestor(line), true
		case allocated && strings.HasPrefix(trimmed, "Handle |"):
			return line, true
		case strings.HasPrefix(trimmed, "Total allocated"):
			allocated = false
			return line, true
		case trimmed == "Imported gralloc buffers:":
			imported = true
			return line, true
		case imported && strings.HasPrefix(trimmed, "+ name:"):
			return a.imported(line)
		case strings.HasPrefix(trimmed, "Total imported by gralloc:"):
			imported = false
			return line, true
		}
		return line, a.named(line)
	})
}

// requestor replaces the name in the last cell of a line in the list of
// allocated buffers. This cell exists in Android 8 and later (see bufferOf).
// The name may contain any characters.
func (a AppFilter) requestor(line string) string {
	cells := 6
	if i := strings.IndexAny(line, ":|"); i >= 0 && line[i] == '|' {
		cells = 7
	}
	row := strings.SplitN(line, "|", cells)
	if len(row) < cells {
		return line
	}
	row[cells-1] = " " + a.layer(strings.TrimSpace(row[cells-1]))
	return strings.Join(row, "|")
}

// imported replaces the name of an imported buffer, which precedes the buffer's
// id.
func (a AppFilter) imported(line string) (string, bool) {
	i, at := strings.LastIndex(line, ", id:"), strings.Index(line, "+ name:")+len("+ name:")
	if i < at {
		return "", false
	}
	return line[:at] + a.layer(strings.TrimSpace(line[at:i])) + line[i:], true
}

var (
	// plainLayer matches names without text written by people: identifiers and
	// numbers.
	plainLayer = regexp.MustCompile(`^[A-Za-z0-9_#$.,:{}()\[\]/-]*(\(BLAST Consumer\)[0-9]*)?$`)
	// packageName matches package names of two or more segments.
	packageName = regexp.MustCompile(`[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)+`)
)

// layer returns the name of a layer, replaced if necessary.
func (a AppFilter) layer(name string) string {
	switch {
	case a.named(name), name == "":
		return name
	case packageName.MatchString(name):
		return OtherApp
	case !plainLayer.MatchString(name):
		return HiddenTitle
	}
	return name
}
