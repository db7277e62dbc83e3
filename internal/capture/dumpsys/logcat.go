package dumpsys

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
)

// LogKind classifies the lines of a log that show problems of a process or how
// the process ended.
type LogKind string

// The kinds. One line may have several kinds: an OutOfMemoryError because no
// thread could be created is also a ThreadLimit. `leakgate parse` also prints
// these values.
const (
	LogGC            LogKind = "gc"              // a garbage collection that ART logs
	LogFullHeap      LogKind = "full_heap"       // an allocation waits for the collector, or the heap is at its limit
	LogOutOfMemory   LogKind = "out_of_memory"   // an OutOfMemoryError is thrown or printed
	LogCrash         LogKind = "crash"           // FATAL EXCEPTION
	LogNativeCrash   LogKind = "native_crash"    // a fatal signal, or the header of a tombstone
	LogLowMemoryKill LogKind = "low_memory_kill" // a kill by lmkd, the kernel's low memory killer or its OOM killer
	LogKill          LogKind = "kill"            // a kill by the activity manager, for any reason
	LogDied          LogKind = "died"            // a report that the process died
	LogANR           LogKind = "anr"             // the app does not respond (ANR)
	LogThreadLimit   LogKind = "thread_limit"    // a thread could not be created
	LogFileLimit     LogKind = "file_limit"      // out of file descriptors
	LogAddressSpace  LogKind = "address_space"   // mmap failed
)

// LogKinds returns all kinds, in the order in which they are reported.
func LogKinds() []LogKind {
	return []LogKind{LogGC, LogFullHeap, LogOutOfMemory, LogCrash, LogNativeCrash, LogLowMemoryKill,
		LogKill, LogDied, LogANR, LogThreadLimit, LogFileLimit, LogAddressSpace}
}

// Mention describes the lines of one kind.
type Mention struct {
	Count int64 `json:"count"`
	// First and Last are the times of the first and the last line as printed:
	// month and day without a year, or seconds. They are empty in a format
	// without times.
	First field.Text `json:"first"`
	Last  field.Text `json:"last"`
	// Line is the last line: printable, at most 256 bytes.
	Line string `json:"line"`
}

// Logcat summarizes what a log contains about one process.
type Logcat struct {
	Entries     int64      // of all processes
	First, Last field.Text // times of the first and the last entry
	// Mentions holds the kinds that occurred. One event is logged in several
	// lines: a kill is reported by the killer, by an observer and in the event
	// log.
	Mentions map[LogKind]Mention
	GC       GC
	LogEnd
	// Truncated reports whether the last line lacks its newline; such a line is
	// not counted.
	Truncated bool
	Warnings  []error
}

// LogEnd describes how a process ended: the class of the last FATAL EXCEPTION,
// the last fatal signal (SIGSEGV), and the reason for the last kill, as the
// device describes it.
type LogEnd struct {
	Exception  field.Text `json:"exception"`
	Signal     field.Text `json:"signal"`
	KillReason field.Text `json:"kill_reason"`
	// Cause is java.lang.OutOfMemoryError if the last FATAL EXCEPTION is, or is
	// caused by, an OutOfMemoryError.
	Cause field.Text `json:"-"`
	// MemoryLimit is the limit, in bytes, on anonymous memory and swap that the
	// process exceeded, as reported by the memory limiter of Android 17.
	MemoryLimit known.Int `json:"-"`
	// KillAdj is the oom_score_adj of the process at its last low-memory kill:
	// 0 in the foreground, 600 and more for cached processes.
	KillAdj known.Int `json:"-"`
}

// GC summarizes the garbage collections. ART logs only collections that were
// requested or slow.
type GC struct {
	// Causes counts collections by cause, as ART names it: Alloc, Background,
	// Explicit, NativeAlloc, ...
	Causes map[string]int64 `json:"-"`
	// HeapUsed and HeapTotal are the sizes after the last collection, in kB;
	// ART prints three or four digits.
	HeapUsed  known.Int `json:"heap_used_kb"`
	HeapTotal known.Int `json:"heap_total_kb"`
	// LongestPause is in microseconds.
	LongestPause known.Int `json:"longest_gc_pause_us"`
}

// Crash reports whether the log shows that a fault in the process itself ended
// it.
func (l Logcat) Crash() bool {
	return l.Mentions[LogCrash].Count+l.Mentions[LogNativeCrash].Count > 0
}

// OutOfMemory reports whether an uncaught OutOfMemoryError ended the process.
func (l Logcat) OutOfMemory() bool {
	return l.Mentions[LogCrash].Count > 0 && l.Cause == outOfMemoryError
}

// MemoryLimiter reports whether the memory limiter of Android 17 killed the
// process.
func (l Logcat) MemoryLimiter() bool {
	return l.Kill() && strings.HasPrefix(string(l.KillReason), memoryLimiter)
}

// outOfMemoryError is the class that ART throws when it runs out of memory,
// threads or file descriptors.
const outOfMemoryError = "java.lang.OutOfMemoryError"

// Kill reports whether the log shows that the system killed the process.
func (l Logcat) Kill() bool {
	return l.Mentions[LogLowMemoryKill].Count+l.Mentions[LogKill].Count > 0
}

const (
	maxLogLine = 8 << 10 // a log entry has at most 4068 bytes (LOGGER_ENTRY_MAX_PAYLOAD)
	maxLogHead = 4 << 10 // bytes of the stream that are searched for an error message
	maxClip    = 256
	maxStamp   = 48
	maxCauses  = 32 // ART has 20 causes
	maxPIDs    = 64 // maximum for one process name
	maxComm    = 15 // TASK_COMM_LEN without the terminating zero
)

// ScanLogcat parses the output of `logcat -d` in the threadtime, time and brief
// formats, with the modifiers epoch, monotonic, usec, year, zone and uid. The
// lines may come from any buffers of Android 5 and later. It collects the lines
// about the process: the process's own lines (the pid in a line is set by the
// log daemon, not by the process), and the system's lines about the process.
//
// A pid of 0 means any process with that name; an empty name means any process
// with that pid. If a pid was used twice within the log, lines of the earlier
// process are included too; they can be distinguished by their times.
//
// The log is read as a stream: memory use does not depend on its length. If the
// log contains no entry, the error is a DeviceError; for an empty log, its kind
// is Empty. Any other error is from r.
func ScanLogcat(r io.Reader, pid int64, process string) (Logcat, error) {
	s := logScan{pid: max(pid, 0), process: process}
	if err := s.scan(r); err != nil {
		return Logcat{}, fmt.Errorf("read logcat: %w", err)
	}
	if s.out.Entries == 0 && !s.began {
		return Logcat{}, notALog(s.head, s.out.Truncated)
	}
	s.out.Warnings = s.warnings.All()
	return s.out, nil
}

// notALog returns the error for output without entries; it recognizes the
// messages of logcat itself (system/logging logcat/logcat.cpp, formerly
// system/core logcat/logcat.cpp).
func notALog(head []byte, cut bool) DeviceError {
	e := notAnAnswer(head, false)
	switch {
	case e.Kind != Format && e.Kind != Failed:
	case strings.Contains(e.Text, "Unrecognized Option"), strings.HasPrefix(e.Text, "Invalid parameter"):
		e.Kind = UnknownOption
	case strings.Contains(e.Text, "Unable to open log device"):
		e.Kind = NoFile
	case strings.Contains(e.Text, "read failure"), strings.Contains(e.Text, "unexpected EOF"),
		strings.HasPrefix(e.Text, "Logcat read"):
		e.Kind = InputOutput
	case cut && startsLikeEntry(e.Text):
		e.Kind = Truncated
	}
	e.Text = tidy(e.Text, maxErrorLine)
	return e
}

// startsLikeEntry reports whether a line may begin with a time, with "I/tag" or
// with a separator.
func startsLikeEntry(line string) bool {
	word, _ := nextWord(line)
	return strings.Trim(word, "0123456789.-") == "" || strings.IndexByte(word, '/') == 1 && isPriority(word[0])
}

// logScan holds the summary and unfinished reports, but no lines of the log.
type logScan struct {
	pid     int64
	process string

	out      Logcat
	warnings field.Warnings
	head     []byte
	n        int
	began    bool // a separator was found
	pids     []int64

	crash *logEntry // a FATAL EXCEPTION whose process is not yet known
	blame bool      // the next line of the crash names the exception
	anr   *logEntry // an ANR whose pid is not yet known
	tomb  int64     // the pid of the crash_dump that reports on the process
}

// logEntry is one line of the log, split into its parts.
type logEntry struct {
	line, time string
	pid        int64
	tag, msg   string
}

func (s *logScan) scan(r io.Reader) error {
	in := bufio.NewReaderSize(r, maxLogLine)
	for {
		line, err := in.ReadSlice('\n')
		s.n++
		s.head = append(s.head, line[:min(len(line), maxLogHead-len(s.head))]...)
		text := string(line) // the reader reuses its buffer
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n') // the rest of the line, which logcat cannot have printed
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil {
			s.out.Truncated = text != ""
			return nil
		}
		s.line(strings.TrimRight(text, "\r\n"))
	}
}

func (s *logScan) line(line string) {
	if strings.HasPrefix(line, "--------- ") { // "beginning of crash", "switch to main"
		s.began = true
		return
	}
	e, ok := entryOf(line)
	if !ok {
		return
	}
	s.out.Entries++
	if e.time != "" {
		if s.out.First == "" {
			s.out.First = field.Text(e.time)
		}
		s.out.Last = field.Text(e.time)
	}
	s.runtime(e)
	if s.own(e) {
		s.said(e)
	}
	s.about(e)
}

// own reports whether the process itself printed the entry.
func (s *logScan) own(e logEntry) bool {
	switch {
	case s.pid > 0:
		return e.pid == s.pid
	case s.process == "":
		return true
	}
	if nameFits(e.tag, s.process) {
		s.recordPID(e.pid)
	}
	return s.knows(e.pid)
}

func (s *logScan) knows(pid int64) bool {
	for _, p := range s.pids {
		if p == pid {
			return true
		}
	}
	return false
}

// recordPID records a pid of the process if the caller specified only a name.
func (s *logScan) recordPID(pid int64) {
	if s.pid == 0 && pid > 0 && !s.knows(pid) && len(s.pids) < maxPIDs {
		s.pids = append(s.pids, pid)
	}
}

// isTarget reports whether a description of a process matches the process that
// is searched for. A name may be truncated to the last or first 15 bytes.
func (s *logScan) isTarget(pid int64, name string) bool {
	if s.pid > 0 && pid != s.pid || s.process != "" && name != "" && !nameFits(name, s.process) {
		return false
	}
	return s.pid > 0 || s.process == "" || name != "" || s.knows(pid)
}

// nameFits reports whether a name, which may be truncated, matches the name of
// a process. The kernel and ART keep the last 15 bytes of a name that contains
// a dot, and the first 15 bytes of any other name
// (com_android_internal_os_Zygote.cpp, SetThreadName). Some lines contain a
// longer prefix.
func nameFits(name, process string) bool {
	return name == process || len(name) >= maxComm &&
		(strings.HasSuffix(process, name) || strings.HasPrefix(process, name))
}

func (s *logScan) mention(kind LogKind, e logEntry) {
	if s.out.Mentions == nil {
		s.out.Mentions = map[LogKind]Mention{}
	}
	m := s.out.Mentions[kind]
	m.Count++
	if m.First == "" {
		m.First = field.Text(e.time)
	}
	m.Last, m.Line = field.Text(e.time), tidy(e.line, maxClip)
	s.out.Mentions[kind] = m
}

// logPhrase is a phrase that occurs in lines of the process itself.
type logPhrase struct {
	kind LogKind
	how  func(s, part string) bool
	part string
}

// The phrases in logPhrases are from art/runtime gc/heap.cc, thread.cc and
// base/mem_map.cc, bionic's strerror and pthread_create.cpp, scudo, and
// libcore's ErrnoException.
var logPhrases = []logPhrase{
	{LogFullHeap, strings.HasPrefix, "Waiting for a blocking GC Alloc"},
	{LogFullHeap, strings.HasPrefix, "Starting a blocking GC Alloc"},
	{LogFullHeap, strings.HasPrefix, "WaitForGcToComplete blocked Alloc on "},
	{LogFullHeap, blockedForAlloc, "WaitForGcToComplete blocked for "},
	{LogFullHeap, strings.HasPrefix, "Forcing collection of SoftReferences"},
	{LogFullHeap, strings.HasPrefix, "Clamp target GC heap from"},
	{LogOutOfMemory, strings.HasPrefix, "Throwing OutOfMemoryError"},
	{LogOutOfMemory, strings.HasPrefix, "java.lang.OutOfMemoryError"},
	{LogOutOfMemory, strings.HasPrefix, "Caused by: java.lang.OutOfMemoryError"},
	{LogThreadLimit, strings.Contains, "pthread_create ("},
	{LogThreadLimit, strings.Contains, "pthread_create failed"},
	{LogThreadLimit, strings.Contains, "Could not allocate JNI Env"},
	{LogFileLimit, strings.Contains, "Too many open files"},
	{LogFileLimit, strings.Contains, ": EMFILE"},
	{LogAddressSpace, strings.Contains, "Failed to mmap"},
	{LogAddressSpace, strings.Contains, "Failed anonymous mmap("},
	{LogAddressSpace, strings.Contains, "mmap failed"},
	{LogAddressSpace, strings.Contains, "Out of memory"},
	{LogAddressSpace, strings.Contains, "internal map failure"},
}

// blockedForAlloc recognizes the message with which Android 5 to 7 report that
// an allocation waits for the collector.
func blockedForAlloc(s, part string) bool {
	return strings.HasPrefix(s, part) && strings.HasSuffix(s, " for cause Alloc")
}

// said parses a line that the process itself has logged.
func (s *logScan) said(e logEntry) {
	msg := strings.TrimSpace(e.msg)
	if strings.Contains(msg, "GC freed ") && s.runtimeTag(e.tag) {
		s.collection(e, msg)
	}
	var told LogKind
	for _, p := range logPhrases {
		if p.kind != told && p.how(msg, p.part) {
			told = p.kind
			s.mention(p.kind, e)
		}
	}
	if rest, ok := strings.CutPrefix(msg, "Fatal signal "); ok && e.tag == "libc" {
		s.mention(LogNativeCrash, e)
		s.signal(rest)
	}
}

// runtimeTag reports whether ART logs with this tag: art; zygote for a process
// that has not been renamed yet; or, since Android 8, the truncated name of the
// process. The pid of the line has already been checked, so any longer prefix
// or suffix of the name is accepted.
func (s *logScan) runtimeTag(tag string) bool {
	return tag == "art" || strings.Contains(tag, "zygote") || s.process == "" || tag == s.process ||
		len(tag) > maxComm/2 && (strings.HasSuffix(s.process, tag) || strings.HasPrefix(s.process, tag))
}

// collection parses a line of Heap::LogGC (art/runtime/gc/heap.cc):
//
//	Background concurrent copying GC freed 12345(800KB) AllocSpace objects, 3(60KB) LOS objects, 24% free, 73MB/97MB, paused 123us,1.2ms total 101ms
//
// Android 14 prints "freed 800KB AllocSpace bytes"; a vendor adds
// "(M:180MB,L:368MB)" after the used size.
func (s *logScan) collection(e logEntry, msg string) {
	s.mention(LogGC, e)
	cause, _, _ := strings.Cut(msg, " ")
	s.cause(tidy(cause, maxComm*2))
	used, total, ok := heapOf(msg)
	if !ok {
		s.warnings.Add(s.n, "GC", []byte(msg), "no heap sizes")
	} else {
		s.out.GC.HeapUsed, s.out.GC.HeapTotal = known.Of(used), known.Of(total)
	}
	_, pauses, ok := strings.Cut(msg, ", paused ")
	if !ok {
		return
	}
	pauses, _, _ = strings.Cut(pauses, " total ")
	for _, word := range strings.SplitN(pauses, ",", 16) {
		us, ok := microseconds(word)
		if !ok {
			s.warnings.Add(s.n, "GC", []byte(word), "not a pause")
			continue
		}
		if us > s.out.GC.LongestPause.N || !s.out.GC.LongestPause.Known {
			s.out.GC.LongestPause = known.Of(us)
		}
	}
}

func (s *logScan) cause(word string) {
	if s.out.GC.Causes == nil {
		s.out.GC.Causes = map[string]int64{}
	}
	if _, ok := s.out.GC.Causes[word]; !ok && len(s.out.GC.Causes) >= maxCauses {
		return
	}
	s.out.GC.Causes[word]++
}

func heapOf(msg string) (used, total int64, ok bool) {
	_, rest, ok := strings.Cut(msg, "% free,")
	if !ok {
		return 0, 0, false
	}
	before, after, ok := strings.Cut(rest, "/")
	if !ok {
		return 0, 0, false
	}
	before, _, _ = strings.Cut(before, "(")
	after, _, _ = strings.Cut(after, ",")
	used, okUsed := prettySize(strings.TrimSpace(before))
	total, okTotal := prettySize(strings.TrimSpace(after))
	return used, total, okUsed && okTotal
}

// prettySize parses the output of ART's PrettySize and returns kB: "0B",
// "2870KB", "73MB", "2GB".
func prettySize(s string) (kb int64, ok bool) {
	for unit, scale := range map[string]int64{"KB": 1, "MB": 1 << 10, "GB": 1 << 20} {
		if digits, found := strings.CutSuffix(s, unit); found {
			n, ok := wholeNumber(digits)
			return n * scale, ok && n < 1<<30
		}
	}
	digits, found := strings.CutSuffix(s, "B")
	n, ok := wholeNumber(digits)
	return n >> 10, found && ok
}

func wholeNumber(s string) (int64, bool) {
	n, ok := number(s)
	return n, ok && n >= 0 && s[0] != '-'
}

// microseconds parses the output of ART's PrettyDuration: "0", "56us",
// "2.462ms", "1.008s".
func microseconds(s string) (int64, bool) {
	if s == "0" {
		return 0, true
	}
	scale := int64(-1)
	for _, unit := range []struct {
		name  string
		scale int64 // ns
	}{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}} {
		if digits, found := strings.CutSuffix(s, unit.name); found {
			s, scale = digits, unit.scale
			break
		}
	}
	whole, fraction, dotted := strings.Cut(s, ".")
	n, ok := wholeNumber(whole)
	if scale < 0 || !ok || n > 1e9 || dotted && (fraction == "" || len(fraction) > 9) {
		return 0, false
	}
	ns := n * scale
	for _, c := range fraction {
		scale /= 10
		if c < '0' || c > '9' {
			return 0, false
		}
		ns += int64(c-'0') * scale
	}
	return ns / 1000, true
}

// runtime tracks the block that RuntimeInit.loggingUncaughtException prints:
// FATAL EXCEPTION, then "Process: NAME, PID: N", then the exception. The
// process itself prints the block.
func (s *logScan) runtime(e logEntry) {
	if e.tag != "AndroidRuntime" {
		return
	}
	msg := strings.TrimSpace(e.msg)
	if strings.HasPrefix(msg, "FATAL EXCEPTION: ") ||
		strings.HasPrefix(msg, "*** FATAL EXCEPTION IN SYSTEM PROCESS: ") {
		s.crash, s.blame = &e, false
		return
	}
	if s.crash == nil && s.own(e) && strings.HasPrefix(msg, "Caused by: "+outOfMemoryError) {
		s.out.Cause = outOfMemoryError
	}
	if s.crash == nil || s.crash.pid != e.pid {
		return
	}
	name, pid, told := crashedProcess(msg)
	switch {
	case s.blame:
		s.exception(msg)
		s.crash, s.blame = nil, false
	case told && s.isTarget(pid, name):
		s.recordPID(pid)
		s.mention(LogCrash, *s.crash)
		s.blame, s.out.Cause = true, ""
	case told, !s.own(e):
		s.crash = nil
	default: // the system server does not print this line
		s.mention(LogCrash, *s.crash)
		s.exception(msg)
		s.crash = nil
	}
}

func crashedProcess(msg string) (name string, pid int64, ok bool) {
	name, digits, ok := strings.Cut(", "+msg, ", PID: ")
	pid, isNumber := wholeNumber(digits)
	name, named := strings.CutPrefix(name, ", Process: ")
	return name, pid, ok && isNumber && (named || name == "")
}

func (s *logScan) exception(msg string) {
	class, _, _ := strings.Cut(msg, ":")
	class = tidy(strings.TrimSpace(class), maxName)
	if class == "" || strings.ContainsAny(class, " ()") {
		return
	}
	s.out.Exception, s.out.Cause = field.Text(class), ""
	if class == outOfMemoryError {
		s.out.Cause = outOfMemoryError
	}
}

// signal parses the name in "11 (SIGSEGV), code 1 ...".
func (s *logScan) signal(rest string) {
	_, rest, _ = strings.Cut(rest, "(")
	name, _, ok := strings.Cut(rest, ")")
	if ok && strings.HasPrefix(name, "SIG") {
		s.out.Signal = field.Text(tidy(name, maxComm))
	}
}

// about parses the system's lines about the process.
func (s *logScan) about(e logEntry) {
	msg := strings.TrimSpace(e.msg)
	if lowMemoryTag(e.tag) {
		s.lowMemory(e, msg)
		return
	}
	switch e.tag {
	case "ActivityManager":
		s.activityManager(e, msg)
	case "am_kill", "am_proc_died", "am_crash", "am_anr", "am_proc_start":
		s.event(e, msg)
	case "DEBUG", "crash_dump32", "crash_dump64":
		s.tombstone(e, msg)
	case "Zygote":
		s.zygote(e, msg)
	case memoryLimiter:
		s.limiter(msg)
	}
}

// limiter parses "onLimitExceeded: pid=7 uid=10123 type=anon+swap memHigh=N
// swapHigh=N pkg=com.shop" (frameworks/base services/core
// am/MemoryLimiter.java, onLimitExceeded), which is logged half a minute before
// the kill. The limit on anonymous memory and swap is the sum of memHigh and
// swapHigh; exceeding a limit of another type does not lead to a kill.
func (s *logScan) limiter(msg string) {
	rest, ok := strings.CutPrefix(msg, "onLimitExceeded: ")
	if !ok {
		return
	}
	f := map[string]string{}
	for word := range strings.FieldsSeq(clip(rest, maxClip)) {
		if key, value, ok := strings.Cut(word, "="); ok {
			f[key] = value
		}
	}
	pid, okPID := wholeNumber(f["pid"])
	memory, okMemory := wholeNumber(f["memHigh"])
	swap, okSwap := wholeNumber(f["swapHigh"])
	if f["type"] == "anon+swap" && okPID && okMemory && okSwap && max(memory, swap) < 1<<60 && s.isTarget(pid, "") {
		s.out.MemoryLimit = known.Of(memory + swap)
	}
}

// lowMemory parses lmkd's "Kill 'NAME' (PID), uid U, oom_score_adj A to free
// ...; reason: R" (system/memory/lmkd/lmkd.cpp; "Killing" and "kill" before
// Android 11), the kernel's "Killing 'COMM' (PID), adj A" (lowmemorykiller.c)
// and the OOM killer's "Killed process PID (COMM)" (mm/oom_kill.c).
func (s *logScan) lowMemory(e logEntry, msg string) {
	pid, name, rest, ok := victimOf(msg)
	if !ok || !s.isTarget(pid, name) {
		return
	}
	s.mention(LogLowMemoryKill, e)
	s.out.KillAdj = adjOf(rest)
	if _, why, ok := strings.Cut(msg, "reason: "); ok {
		s.out.KillReason = field.Text(tidy(why, maxClip))
	}
}

// lowMemoryTag reports whether lmkd or one of the kernel's killers logs with
// this tag.
func lowMemoryTag(tag string) bool {
	switch tag {
	case "lowmemorykiller", "lmkd", "kernel", "Out of memory":
		return true
	}
	return false
}

// victimOf returns the process that a line of a low-memory killer names, and
// the text after the name.
func victimOf(msg string) (pid int64, name, rest string, ok bool) {
	msg = strings.TrimPrefix(strings.TrimPrefix(msg, "lowmemorykiller: "), "Out of memory: ")
	verb, rest, _ := strings.Cut(msg, " ")
	digits := ""
	switch {
	case (verb == "Kill" || verb == "Killing" || verb == "kill") && strings.HasPrefix(rest, "'"):
		name, rest, ok = strings.Cut(rest[1:], "' (")
		if ok {
			digits, rest, ok = strings.Cut(rest, ")")
		}
	case (verb == "Kill" || verb == "Killed") && strings.HasPrefix(rest, "process "):
		digits, rest, ok = strings.Cut(strings.TrimPrefix(rest, "process "), " (")
		if ok {
			name, rest, ok = strings.Cut(rest, ")")
		}
	}
	pid, isNumber := wholeNumber(digits)
	return pid, name, rest, ok && isNumber
}

// adjOf parses "oom_score_adj 900", "oom_score_adj:900" (newer kernels), and
// "adj 900".
func adjOf(s string) known.Int {
	_, s, ok := strings.Cut(s, "adj")
	if !ok || s == "" || s[0] != ' ' && s[0] != ':' {
		return known.Int{}
	}
	s = s[1:]
	end := strings.IndexFunc(s, func(r rune) bool { return r != '-' && (r < '0' || r > '9') })
	if end >= 0 {
		s = s[:end]
	}
	n, err := strconv.ParseInt(s, 10, 16)
	if err != nil {
		return known.Int{}
	}
	return known.Of(n)
}

// activityManager parses lines that are logged by frameworks/base services/core
// am/ProcessRecord.java (killLocked), ActivityManagerService.java
// (appDiedLocked) and ProcessErrorStateRecord.java (appNotResponding).
func (s *logScan) activityManager(e logEntry, msg string) {
	switch {
	case strings.HasPrefix(msg, "Killing "):
		pid, name, rest, ok := pidAndName(strings.TrimPrefix(msg, "Killing "))
		if !ok || !s.isTarget(pid, name) {
			return
		}
		s.mention(LogKill, e)
		if _, why, ok := strings.Cut(rest, "): "); ok {
			s.out.KillReason = field.Text(tidy(why, maxClip))
		}
	case strings.HasPrefix(msg, "Start proc "):
		if pid, name, _, ok := pidAndName(strings.TrimPrefix(msg, "Start proc ")); ok && s.process != "" &&
			name == s.process {
			s.recordPID(pid)
		}
	case strings.HasPrefix(msg, "Process "):
		name, rest, ok := strings.Cut(strings.TrimPrefix(msg, "Process "), " (pid ")
		digits, rest, closed := strings.Cut(rest, ")")
		pid, isNumber := wholeNumber(digits)
		if ok && closed && isNumber && strings.Contains(clip(rest, maxClip), " has died") && s.isTarget(pid, name) {
			s.mention(LogDied, e)
		}
	case strings.HasPrefix(msg, "ANR in "):
		name, _, _ := strings.Cut(strings.TrimPrefix(msg, "ANR in "), " ")
		s.anr = nil
		if s.process == "" || name == s.process {
			s.anr = &e
		}
		if s.anr != nil && s.pid == 0 {
			s.mention(LogANR, e)
			s.anr = nil
		}
	case strings.HasPrefix(msg, "PID: ") && s.anr != nil:
		if pid, ok := wholeNumber(strings.TrimPrefix(msg, "PID: ")); ok && pid == s.pid {
			s.mention(LogANR, *s.anr)
		}
		s.anr = nil
	}
}

// pidAndName parses "123:com.shop:push/u0a12 ...".
func pidAndName(s string) (pid int64, name, rest string, ok bool) {
	digits, rest, ok := strings.Cut(s, ":")
	pid, isNumber := wholeNumber(digits)
	if !ok || !isNumber {
		return 0, "", "", false
	}
	name, rest, ok = strings.Cut(rest, "/")
	return pid, name, rest, ok
}

// event parses an entry of the event log (services/core
// am/EventLogTags.logtags), which begins with the user, the pid and the name.
// In am_crash, the pid comes before the user
// (ActivityManagerService.handleApplicationCrashInner); in am_proc_start, a uid
// follows the pid.
func (s *logScan) event(e logEntry, msg string) {
	f := strings.Split(clip(strings.Trim(msg, "[]"), maxClip), ",")
	pidAt, nameAt := 1, 2
	switch e.tag {
	case "am_crash":
		pidAt = 0
	case "am_proc_start":
		nameAt = 3
	}
	if len(f) <= nameAt {
		return
	}
	pid, ok := wholeNumber(f[pidAt])
	name, more := f[nameAt], ""
	if len(f) > 4 {
		more = f[4]
	}
	switch {
	case !ok:
	case e.tag == "am_proc_start":
		if s.process != "" && name == s.process {
			s.recordPID(pid)
		}
	case e.tag == "am_crash" && more == "Native crash":
		// In this event, the pid is that of the system process that reports the
		// crash.
		if s.process == name || s.process == "" && s.pid == 0 {
			s.mention(LogNativeCrash, e)
		}
	case s.isTarget(pid, name):
		s.ended(e, more)
	}
}

// ended records an event that ended the process.
func (s *logScan) ended(e logEntry, more string) {
	switch e.tag {
	case "am_proc_died":
		s.mention(LogDied, e)
	case "am_anr":
		s.mention(LogANR, e)
	case "am_crash":
		s.mention(LogCrash, e)
		s.exception(more)
	case "am_kill":
		s.mention(LogKill, e)
		s.out.KillReason = field.Text(tidy(more, maxClip))
	}
}

// tombstone parses the header that crash_dump prints (system/core debuggerd
// libdebuggerd/tombstone.cpp), and the line below it that names the signal.
func (s *logScan) tombstone(e logEntry, msg string) {
	rest, ok := strings.CutPrefix(msg, "signal ")
	if ok && s.tomb == e.pid {
		s.signal(rest)
	}
	if rest, ok = strings.CutPrefix(msg, "pid: "); !ok {
		return
	}
	s.tomb = 0
	digits, rest, _ := strings.Cut(rest, ",")
	pid, isNumber := wholeNumber(digits)
	_, rest, named := strings.Cut(rest, ">>> ")
	name, _, closed := strings.Cut(rest, " <<<")
	if isNumber && named && closed && s.isTarget(pid, name) {
		s.mention(LogNativeCrash, e)
		s.tomb = e.pid
	}
}

// zygote parses "Process PID exited due to signal 9 (Killed)" and "exited
// cleanly" (com_android_internal_os_Zygote.cpp, SigChldHandler; "signal (9)"
// before Android 10).
func (s *logScan) zygote(e logEntry, msg string) {
	rest, ok := strings.CutPrefix(msg, "Process ")
	if !ok {
		return
	}
	digits, rest, _ := strings.Cut(rest, " ")
	if pid, ok := wholeNumber(digits); ok && strings.HasPrefix(rest, "exited ") && s.isTarget(pid, "") {
		s.mention(LogDied, e)
	}
}

// entryOf parses one line of logcat (liblog logprint.cpp,
// android_log_formatLogLine).
func entryOf(line string) (logEntry, bool) {
	stamp, rest := stampOf(line)
	e := logEntry{line: line, time: stamp}
	if len(rest) > 2 && rest[1] == '/' && isPriority(rest[0]) {
		return e, e.brief(rest[2:])
	}
	if stamp == "" {
		return logEntry{}, false
	}
	return e, e.threadtime(rest)
}

// brief parses "tag ( 1234): message".
func (e *logEntry) brief(rest string) bool {
	head, msg, ok := strings.Cut(rest, "): ")
	if !ok {
		head, ok = strings.CutSuffix(rest, "):")
	}
	open := strings.LastIndexByte(head, '(')
	if !ok || open < 0 {
		return false
	}
	e.pid, ok = wholeNumber(strings.TrimLeft(head[open+1:], " "))
	e.tag, e.msg = strings.TrimSpace(head[:open]), msg
	return ok
}

// threadtime parses "[zone] [uid] 1234 1250 I tag : message".
func (e *logEntry) threadtime(rest string) bool {
	var pid, tid string // the two words before the priority
	for range 5 {
		word, after := nextWord(rest)
		if pid != "" && len(word) == 1 && isPriority(word[0]) {
			n, okPID := wholeNumber(pid)
			_, okTID := wholeNumber(tid)
			e.pid = n
			return okPID && okTID && e.tagged(after)
		}
		pid, tid, rest = tid, word, after
	}
	return false
}

func (e *logEntry) tagged(rest string) bool {
	tag, msg, ok := strings.Cut(rest, ": ")
	if !ok {
		tag, ok = strings.CutSuffix(rest, ":")
	}
	e.tag, e.msg = strings.TrimSpace(tag), msg
	return ok
}

func isPriority(c byte) bool { return strings.IndexByte("VDIWEFAS", c) >= 0 }

func nextWord(s string) (word, rest string) {
	s = strings.TrimLeft(s, " ")
	word, rest, _ = strings.Cut(s, " ")
	return word, rest
}

// stampOf separates the time from a line. The time has the form "11-22
// 15:32:47.123", with or without a year, or is a number of seconds. If there is
// no time, it returns the line unchanged.
func stampOf(line string) (stamp, rest string) {
	first, after := nextWord(line)
	if len(first) > maxStamp/2 || first == "" || strings.Trim(first, "0123456789.-") != "" {
		return "", line
	}
	if strings.Contains(first, ".") && !strings.Contains(first, "-") { // epoch, monotonic
		return first, after
	}
	if strings.Count(first, "-") == 0 {
		return "", line
	}
	clock, after := nextWord(after)
	if len(clock) > maxStamp/2 || strings.Count(clock, ":") != 2 || strings.Trim(clock, "0123456789.:") != "" {
		return "", line
	}
	return first + " " + clock, after
}

// tidy returns a string from a device in a form that can be stored: printable,
// and at most n bytes.
func tidy(s string, n int) string {
	return text.Printable(strings.ReplaceAll(clip(s, n), "\t", " "))
}
