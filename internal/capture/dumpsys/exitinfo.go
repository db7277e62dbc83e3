package dumpsys

import (
	"math"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

// ExitInfo is the output of dumpsys activity exit-info [PACKAGE], on Android 11
// and later: how processes ended. For each package, the most recent process
// comes first.
type ExitInfo struct {
	// Persisted is the time at which the device last wrote its records to disk,
	// as printed; it is empty if absent, and in the year 1970 if nothing has
	// been written since boot.
	Persisted field.Text
	Exits     []Exit
	// Truncated reports whether the output is visibly truncated.
	Truncated bool
	Warnings  []error
}

// Exit is one ApplicationExitInfo.
type Exit struct {
	Package   field.Text `json:"package"`
	Timestamp field.Text `json:"timestamp"` // as printed: the device's wall clock, without a zone
	PID       known.Int  `json:"pid"`
	RealUID   known.Int  `json:"uid"`
	User      known.Int  `json:"user"`
	Process   field.Text `json:"process"`
	// Reason is the value of one of the REASON_* constants. ReasonName is the
	// name of the constant without REASON_; for an unknown value, it is the
	// name that the device printed.
	Reason     known.Int  `json:"reason"`
	ReasonName field.Text `json:"reason_name"`
	// SubreasonName is the name of the subreason, as the device printed it. The
	// dump of Android 11 has no subreasons.
	Subreason     known.Int  `json:"subreason"`
	SubreasonName field.Text `json:"subreason_name"`
	// Status is the exit code if the reason is EXIT_SELF, and the signal number
	// if it is SIGNALED or CRASH_NATIVE.
	Status     known.Int `json:"status"`
	Importance known.Int `json:"importance"`
	// Pss and Rss are the last samples before the process died, in kB, rounded
	// to two or three digits as printed. If there is no sample, Android prints
	// 0; the value is then unknown.
	Pss         known.Int  `json:"pss_kb"`
	Rss         known.Int  `json:"rss_kb"`
	Description field.Text `json:"description"` // unknown if the device prints null
	// the path of the trace file on the device; unknown if the device prints
	// null
	Trace field.Text `json:"trace"`
}

const (
	maxExits       = 1 << 12 // Android keeps 16 for each package and user
	maxDescription = 1 << 10
)

type exitMeaning uint8

const (
	exitOther exitMeaning = iota // the app's or the user's own decision, or unknown
	exitCrash
	exitKill
	exitSignal // the signal determines whether the cause was a fault in the app
)

// Values of the REASON_* constants. The constants for the memory limiter and
// for anomalies belong to Android 17 and have been public since API 37.2.
// Before that, the memory limiter killed processes with REASON_OTHER and a
// description that begins with MemoryLimiter (am/MemoryLimiter.java,
// onLimitExceeded and killProcess).
const (
	reasonOther         = 13
	reasonMemoryLimiter = 17
	reasonAnomaly       = 18
	memoryLimiter       = "MemoryLimiter"
)

// exitReasons maps numbers to the REASON_* constants of frameworks/base
// core/java/android/app/ApplicationExitInfo.java. An ANR counts as neither a
// crash nor a kill.
var exitReasons = []struct {
	name    string
	meaning exitMeaning
}{
	0:  {"UNKNOWN", exitOther},
	1:  {"EXIT_SELF", exitOther},
	2:  {"SIGNALED", exitSignal},
	3:  {"LOW_MEMORY", exitKill},
	4:  {"CRASH", exitCrash},
	5:  {"CRASH_NATIVE", exitCrash},
	6:  {"ANR", exitOther},
	7:  {"INITIALIZATION_FAILURE", exitOther},
	8:  {"PERMISSION_CHANGE", exitKill},
	9:  {"EXCESSIVE_RESOURCE_USAGE", exitKill},
	10: {"USER_REQUESTED", exitOther},
	11: {"USER_STOPPED", exitOther},
	12: {"DEPENDENCY_DIED", exitKill},
	13: {"OTHER", exitKill}, // "killed by the system for various other reasons": too many cached, memory pressure, ...
	14: {"FREEZER", exitKill},
	15: {"PACKAGE_STATE_CHANGE", exitKill},
	16: {"PACKAGE_UPDATED", exitKill},

	reasonMemoryLimiter: {"MEMORY_LIMITER", exitKill}, // it exceeded the system's memory limit
	reasonAnomaly:       {"ANOMALY", exitKill},        // it violated one of the system's rules about resource anomalies
}

// exitSignals are the signals caused by a fault in the process itself (those
// for which bionic linker/debuggerd_handler.cpp installs its handler), and
// SIGKILL: a device that cannot report LOW_MEMORY reports SIGNALED with
// SIGKILL.
var exitSignals = map[int64]exitMeaning{
	4: exitCrash, 5: exitCrash, 6: exitCrash, 7: exitCrash, 8: exitCrash, 11: exitCrash, 31: exitCrash,
	9: exitKill,
}

// Crash reports whether a fault in the process itself ended it: an exception, a
// native crash, or a signal that indicates a crash.
func (e Exit) Crash() bool { return e.meaning() == exitCrash }

// Kill reports whether the system killed the process: because of low memory,
// too many cached processes, an update, ... SIGKILL counts too, because some
// devices cannot report LOW_MEMORY. User requests do not count.
func (e Exit) Kill() bool { return e.meaning() == exitKill }

// MemoryLimiter reports whether the memory limiter of Android 17 killed the
// process.
func (e Exit) MemoryLimiter() bool {
	if !e.Reason.Known {
		return false
	}
	return e.Reason.N == reasonMemoryLimiter || e.Reason.N == reasonOther &&
		strings.HasPrefix(string(e.Description), memoryLimiter)
}

// MemoryAnomaly reports whether the system killed the process because of an
// anomaly in its memory use. Anomaly rules may also be about other resources;
// only the description and the subreason name the resource.
func (e Exit) MemoryAnomaly() bool {
	if !e.Reason.Known || e.Reason.N != reasonAnomaly {
		return false
	}
	words := strings.ToLower(string(e.Description) + " " + string(e.SubreasonName))
	return strings.Contains(words, "memory") || strings.Contains(words, "oom") || strings.Contains(words, "rss") ||
		strings.Contains(words, "heap")
}

func (e Exit) meaning() exitMeaning {
	if !e.Reason.Known || e.Reason.N < 0 || e.Reason.N >= int64(len(exitReasons)) {
		return exitOther
	}
	m := exitReasons[e.Reason.N].meaning
	if m != exitSignal {
		return m
	}
	if !e.Status.Known {
		return exitOther
	}
	return exitSignals[e.Status.N]
}

// ParseExitInfo parses the output of
// AppExitInfoTracker.dumpHistoryProcessExitInfo (frameworks/base
// services/core/java/com/android/server/am). For a package without records,
// Exits is empty. The error is a DeviceError; before Android 11 its kind is
// Unsupported.
func ParseExitInfo(text []byte) (ExitInfo, error) {
	s, tooLong := input(text)
	p := exitScan{in: lines{rest: s}}
	for p.step() {
	}
	p.endExit()
	if !p.began {
		return ExitInfo{}, notExits(s)
	}
	p.out.Truncated = p.out.Truncated || tooLong
	p.out.Warnings = p.warnings.All()
	return p.out, nil
}

// notExits returns the error for output without records. It recognizes the
// messages of ActivityManagerService.dump up to Android 10. Since Android 7,
// the service's shell command runs first; it rejects exit-info, too.
func notExits(s string) DeviceError {
	e := notAnAnswer([]byte(s), false)
	if e.Kind == Format && strings.Contains(clip(s, maxErrorHead), "Bad activity command") {
		e.Kind = Unsupported
	}
	return e
}

// exitFields are the fields of a record in the order of
// ApplicationExitInfo.dump: three lines with several fields each since Android
// 12, one line for each field in Android 11.
var exitFields = []string{
	"timestamp", "pid", "realUid", "packageUid", "definingUid", "user",
	"process", "reason", "subreason", "status",
	"importance", "pss", "rss", "description", "state", "trace",
}

type exitScan struct {
	in       lines
	out      ExitInfo
	warnings field.Warnings
	began    bool
	pkg      string
	cur      *Exit
	seen     map[string]bool // the fields of cur read so far; the first value of a repeated field is used
	open     bool            // the description of cur continues on the next line
}

func (p *exitScan) step() bool {
	line, whole, ok := p.in.next()
	if !ok {
		return false
	}
	trimmed := strings.TrimSpace(line)
	p.out.Truncated = p.out.Truncated || !whole
	switch {
	case !p.began:
		p.began = strings.HasPrefix(trimmed, "ACTIVITY MANAGER PROCESS EXIT INFO")
	case strings.HasPrefix(trimmed, "ApplicationExitInfo #"):
		p.endExit()
		if whole {
			p.startExit()
		}
	case p.open:
		p.description(trimmed, whole)
	case strings.HasPrefix(trimmed, "Last Timestamp of Persistence"):
		if _, at, ok := strings.Cut(trimmed, ": "); ok && whole {
			p.out.Persisted = field.Text(tidy(foldDigits(at), maxStamp))
		}
	case strings.HasPrefix(trimmed, "package: "):
		p.endExit()
		p.pkg = ""
		if whole {
			p.pkg = tidy(strings.TrimPrefix(trimmed, "package: "), maxName)
		}
	case strings.HasPrefix(trimmed, "Historical Process Exit for"):
		p.endExit()
	case p.cur != nil:
		p.fields(trimmed, whole)
	default:
		if e, ok := interruption(trimmed); ok {
			p.out.Truncated = true
			p.warnings.Add(p.in.n, "answer", []byte(e.Text), string(e.Kind))
		}
	}
	return true
}

func (p *exitScan) startExit() {
	if len(p.out.Exits) >= maxExits {
		p.out.Truncated = true
		return
	}
	p.cur, p.seen = &Exit{Package: field.Text(p.pkg)}, map[string]bool{}
}

func (p *exitScan) endExit() {
	if p.cur == nil {
		return
	}
	if !p.seen["trace"] {
		p.out.Truncated = true // this field ends each record
	}
	if len(p.seen) > 0 {
		p.out.Exits = append(p.out.Exits, *p.cur)
	}
	p.cur, p.seen, p.open = nil, nil, false
}

// fields parses "key=value key=value". A value ends where one of the possible
// next keys begins; only descriptions contain spaces and other keys.
func (p *exitScan) fields(line string, whole bool) {
	at := -1
	for i, key := range exitFields {
		if strings.HasPrefix(line, key+"=") {
			at = i
		}
	}
	if e, ok := interruption(line); ok && at < 0 {
		p.out.Truncated = true
		p.warnings.Add(p.in.n, "answer", []byte(e.Text), string(e.Kind))
		p.endExit()
	}
	for at >= 0 && p.cur != nil {
		key := exitFields[at]
		line = line[len(key)+1:]
		end, next := endOfField(line, at)
		value := line[:end]
		switch {
		case next < 0 && !whole: // the value may be truncated
		case next < 0 && key == "description":
			p.field(key, value)
			// In Android 11, the line after the description begins with state=;
			// any other line continues the description.
			p.open = !strings.HasPrefix(strings.TrimSpace(p.in.rest), "state=")
		default:
			p.field(key, value)
		}
		if next < 0 {
			return
		}
		line, at = line[end+1:], next
	}
}

// endOfField returns the end of a field's value and the index of the next
// field; the index is -1 if the value extends to the end of the line.
func endOfField(line string, at int) (end, next int) {
	if exitFields[at] == "description" {
		// A description may include strings from an app, so only the last
		// occurrence is certain to come from the device itself.
		if i := strings.LastIndex(line, " state="); i >= 0 {
			return i, at + 1
		}
		return len(line), -1
	}
	for next = at + 1; next < len(exitFields); next++ {
		if i := strings.Index(line, " "+exitFields[next]+"="); i >= 0 {
			return i, next
		}
	}
	return len(line), -1
}

// description appends another line to the description of the current record.
func (p *exitScan) description(line string, whole bool) {
	text, rest := line, ""
	if i := strings.LastIndex(line, "state="); i >= 0 && strings.Contains(line[i:], " trace=") {
		text, rest, p.open = strings.TrimSpace(line[:i]), line[i:], false
	}
	if !whole && p.open {
		return
	}
	p.cur.Description = field.Text(tidy(string(p.cur.Description)+" "+text, maxDescription))
	if rest != "" {
		p.fields(rest, whole)
	}
}

func (p *exitScan) field(key, value string) {
	if p.seen[key] {
		return
	}
	p.seen[key] = true
	e := p.cur
	switch key {
	case "timestamp":
		e.Timestamp = field.Text(tidy(foldDigits(value), maxStamp))
	case "process":
		e.Process = field.Text(tidy(orNothing(value), maxName))
	case "reason":
		e.Reason, e.ReasonName = p.coded(key, value)
		if n := e.Reason.N; e.Reason.Known && n >= 0 && n < int64(len(exitReasons)) {
			e.ReasonName = field.Text(exitReasons[n].name)
		}
	case "subreason":
		e.Subreason, e.SubreasonName = p.coded(key, value)
	case "pss":
		e.Pss = p.size(key, value)
	case "rss":
		e.Rss = p.size(key, value)
	case "description":
		e.Description = field.Text(tidy(orNothing(value), maxDescription))
	case "trace":
		e.Trace = field.Text(tidy(orNothing(value), maxName))
	default:
		if to := e.numberSlot(key); to != nil {
			*to = p.number(key, value)
		}
	}
}

func (e *Exit) numberSlot(key string) *known.Int {
	switch key {
	case "pid":
		return &e.PID
	case "realUid":
		return &e.RealUID
	case "user":
		return &e.User
	case "status":
		return &e.Status
	case "importance":
		return &e.Importance
	}
	return nil
}

// orNothing returns "" for null, which Java prints for an absent string, and
// any other value unchanged.
func orNothing(value string) string {
	if value == "null" {
		return ""
	}
	return value
}

func (p *exitScan) number(key, value string) known.Int {
	n, ok := number(value)
	if !ok {
		p.warnings.Add(p.in.n, key, []byte(value), "not a number")
		return known.Int{}
	}
	return known.Of(n)
}

// coded parses "4 (APP CRASH(EXCEPTION))".
func (p *exitScan) coded(key, value string) (known.Int, field.Text) {
	digits, words, _ := strings.Cut(value, " ")
	words = strings.TrimSuffix(strings.TrimPrefix(words, "("), ")")
	return p.number(key, digits), field.Text(tidy(words, maxName))
}

func (p *exitScan) size(key, value string) known.Int {
	kb, ok := debugSize(foldDigits(value))
	if !ok {
		p.warnings.Add(p.in.n, key, []byte(value), "not a size")
		return known.Int{}
	}
	if kb == 0 {
		return known.Int{}
	}
	return known.Of(kb)
}

// debugSize parses the output of android.util.DebugUtils.sizeValueToString and
// returns kB: "0.00", "904KB", "23MB", "1.2GB". The decimal point depends on
// the system's language.
func debugSize(s string) (kb int64, ok bool) {
	scale := 1.0 / 1024
	for i, unit := range []string{"KB", "MB", "GB", "TB", "PB"} {
		if digits, found := strings.CutSuffix(s, unit); found {
			s, scale = digits, math.Pow(1024, float64(i))
			break
		}
	}
	s = strings.NewReplacer(",", ".", "\u066b", ".").Replace(s)
	if s == "" || len(s) > 16 || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f*scale < 1<<50) {
		return 0, false
	}
	return int64(math.Round(f * scale)), true
}
